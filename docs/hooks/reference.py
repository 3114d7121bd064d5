"""Fill the pages of the reference: what follows ``<!-- reference: NAME -->`` is what the code says of that.

The pages are in the repository as they are filled, so that they can be read without the site: ``scripts/reference``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from docs.hooks.generate.commands import command_page
from docs.hooks.generate.metrics import metric_page
from docs.hooks.generate.operators import operator_page
from docs.hooks.generate.problems import problem_page
from docs.hooks.generate.python import python_summary
from docs.hooks.generate.rest import tag_page

_MARK = re.compile(r"(<!-- reference: (\w+) ?([\w.]*) -->\n).*?(<!-- end of reference -->)", re.DOTALL)
_GENERATORS: dict[str, Callable[..., str]] = {
    "commands": command_page,
    "metrics": metric_page,
    "operators": operator_page,
    "problems": problem_page,
    "python": python_summary,
    "rest": tag_page,
}
_ON_THE_SITE = re.compile(r"<!-- reference: python [\w.]+ -->\n.*?<!-- end of reference -->\n*", re.DOTALL)


def filled(markdown: str) -> str:
    """Return a page with what the code says now after each comment. Raise KeyError for one that names nothing."""

    def fill(mark: re.Match[str]) -> str:
        said = _GENERATORS[mark[2]](*filter(None, [mark[3]])).strip()
        return f"{mark[1]}\n{said}\n\n{mark[4]}"

    return _MARK.sub(fill, markdown)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page as it is filled, without summaries of what the site describes in full."""
    return filled(_ON_THE_SITE.sub("", markdown))

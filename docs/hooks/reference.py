"""Fill the pages of the reference: a comment ``<!-- reference: NAME -->`` becomes what the code says of that."""

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
from docs.hooks.generate.rest import tag_page

_MARK = re.compile(r"<!-- reference: (\w+) ?(\w*) -->")
_GENERATORS: dict[str, Callable[..., str]] = {
    "commands": command_page,
    "metrics": metric_page,
    "operators": operator_page,
    "problems": problem_page,
    "rest": tag_page,
}


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace each comment. Raise KeyError for one that names nothing."""
    return _MARK.sub(lambda mark: _GENERATORS[mark[1]](*filter(None, [mark[2]])), markdown)

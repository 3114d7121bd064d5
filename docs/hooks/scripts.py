"""Move the scripts of pages into files: the service forbids browsers to run scripts that stand in a page."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

_SCRIPT = re.compile(r"<script>(.+?)</script>", re.DOTALL)
_FOLDER = "assets/javascripts/inline"
_scripts: dict[str, str] = {}


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Replace each script of a page by a reference to a file, which runs at the same point of the page."""

    def reference(script: re.Match[str]) -> str:
        address = f"{_FOLDER}/{hashlib.sha256(script[1].encode()).hexdigest()[:12]}.js"
        _scripts[address] = script[1]
        return f'<script src="{get_relative_url(address, page.url)}"></script>'

    return _SCRIPT.sub(reference, output)


def on_post_build(config: MkDocsConfig) -> None:
    """Write the files."""
    for address, script in _scripts.items():
        file = Path(config.site_dir) / address
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(script)

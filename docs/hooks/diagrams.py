"""Draw Mermaid's diagrams without a request to another host: pages with one load Mermaid from the site."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

MERMAID = Path(__file__).parents[2] / "service/dashboard/node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js"
ADDRESS = "assets/javascripts/mermaid.js"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the script, which comes with the dashboard's packages."""
    files.append(File.generated(config, ADDRESS, abs_src_path=str(MERMAID)))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Load the script before the theme's, which would otherwise load it from another host."""
    if 'class="mermaid"' not in output:
        return output
    script = f'<script src="{get_relative_url(ADDRESS, page.url)}"></script>\n'
    head, tail = output.rsplit("</head>", 1)
    return f"{head}{script}</head>{tail}"

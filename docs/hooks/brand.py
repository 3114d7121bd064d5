"""Give the site the dashboard's logo."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

LOGO = Path(__file__).parents[2] / "service/dashboard/public/favicon.svg"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the logo, where ``theme.logo`` and ``theme.favicon`` expect it."""
    files.append(File.generated(config, "assets/logo.svg", abs_src_path=str(LOGO)))
    return files

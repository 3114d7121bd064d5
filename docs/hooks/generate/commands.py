"""Describe the command line in Markdown, from the application itself, by Typer's own generator."""

from __future__ import annotations

import html
import re

from typer import Context
from typer.cli import get_docs_for_click
from typer.main import get_command

from loopwright.cli import app


def command_page() -> str:
    """Return each command with its arguments and options, the groups in the order of ``--help``."""
    command = get_command(app)
    text = get_docs_for_click(obj=command, ctx=Context(command), name="loopwright")
    # The page has a title of its own and a table of contents, and its code is escaped once more by Markdown.
    text = text.split("\n", 1)[1]
    text = re.sub(r"\*\*Commands\*\*:\n\n(\* .*\n)*\n", "", text).replace(" range>`", ">`")
    text = re.sub(r"`[^`]*`", lambda found: html.unescape(found[0]), text)
    text = text.replace("```console\n$ ", "```text\n")
    # Names of options in sentences.
    return re.sub(r"(?<![`\w-])(--[a-z-]+)(?=[ ,.;:])(?![^\n]*`:)", r"`\1`", text)

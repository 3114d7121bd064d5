"""What the documents of the repository say: their commands, settings, links and paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.snippets import FENCE, blocks

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md", "benchmarks/README.md")),
        *(ROOT / "docs").rglob("*.md"),
    ]
)
"""Those that the index of the documentation links to."""
COMMUNITY = [ROOT / name for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", "RELEASING.md")]
"""Those that a forge, or whoever makes a release, looks for at the root."""

_INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
_SHELLS = {"sh", "bash", "console"}
_COMMAND = re.compile(r"(?:\w+=\S* )*(?:scripts/|loopwright |\.venv/bin/|python -m |npm )")
_FOLDERS = "benchmarks|client|db|docs|examples|requirements|scripts|service|tests|tuner|workers"
_PATH = re.compile(rf"(?:{_FOLDERS})/[\w./-]*")


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a document; ``is_whole`` unless it stands in a sentence, where its arguments may be missing."""

    line: str
    is_whole: bool


def commands(document: Path) -> Iterator[Command]:
    """Yield the lines of shell blocks, and inline code that begins as a command does."""
    for block in blocks(document):
        if block.language in _SHELLS:
            lines = block.code.replace("\\\n", " ").splitlines()
            if block.language == "console":  # others are what the commands print
                lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
            yield from (Command(line, True) for line in lines if line.strip())
    for code in inline(document.read_text()):
        if _COMMAND.match(code):
            yield Command(code, False)


def inline(text: str) -> list[str]:
    """Return the inline code of a document, outside of blocks."""
    return [" ".join(code.split()) for code in _INLINE.findall(FENCE.sub("", text))]


def links(document: Path) -> list[str]:
    """Return the targets of links and pictures that are files of the repository."""
    targets = _LINK.findall(_INLINE.sub("", FENCE.sub("", document.read_text())))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def paths(document: Path) -> list[str]:
    """Return inline code that is a path from the root of the repository."""
    return [code for code in inline(document.read_text()) if _PATH.fullmatch(code)]


def anchors(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as forges make them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def table(document: Path, first_heading: str) -> list[list[str]]:
    """Return the rows of the table whose first column has this heading."""
    lines = document.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first_heading} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows

"""The recipes of CONTRIBUTING.md name what is in the files, in the tests and among the labels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.docs import documents

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = dict(re.findall(r"^### (Add .*?)\n(.*?)(?=^#)", TEXT, re.MULTILINE | re.DOTALL))


def rows(recipe: str) -> list[tuple[list[str], str]]:
    """The inline code of both columns of the recipe's table: the files, and the text of the second column."""
    lines = [line.strip("|").split(" | ") for line in RECIPES[recipe].splitlines() if line.startswith("| ")]
    return [(documents.inline(first), second) for first, second in lines[1:]]


@pytest.mark.parametrize("recipe", RECIPES)
def test_what_a_recipe_names_is_in_one_of_its_files(recipe: str) -> None:
    """A word of the second column is in a file of the same row; in a row of a new file, in any file of its folder."""
    assert rows(recipe)
    for names, told in rows(recipe):
        paths = [ROOT / name for name in names if (ROOT / name).exists()]
        assert paths or told, names
        files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*.*"))]
        text = "\n".join(file.read_text() for file in files if file.suffix in {".py", ".ts", ".tsx", ".md"})
        for word in documents.inline(told):
            assert "/" in word or re.search(rf"\b{re.escape(word)}\b", text), (names, word)

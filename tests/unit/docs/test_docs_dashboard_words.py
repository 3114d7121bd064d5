"""Documents name the dashboard's parts by the words that the dashboard has."""

from __future__ import annotations

import re

import pytest

from tests.unit.docs.documents import ROOT

_EMPHASIS = re.compile(r"(?<![*\w])\*([A-Za-z][^*]{2,80})\*(?![*\w])")
_FENCE = re.compile(r"```.*?```", re.DOTALL)


def _in_one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).lower()


@pytest.mark.parametrize("document", ["guides/dashboard.md", "tutorials/pytorch.md"])
def test_an_emphasised_part_of_the_dashboard_is_a_text_of_the_dashboard(document: str) -> None:
    sources = (ROOT / "service" / "dashboard" / "src").rglob("*.ts*")
    texts = _in_one_line("\n".join(path.read_text() for path in sources))
    words = _EMPHASIS.findall(_FENCE.sub("", (ROOT / "docs" / document).read_text()))
    assert words
    assert [word for word in words if _in_one_line(word) not in texts] == []

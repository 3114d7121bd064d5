"""Names are short and can be shown as they are."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.codegen.labels import complaint


@pytest.mark.parametrize("name", ["main", "a product", "fused_conv2d1_add_relu", "größe", "行列", "x" * 200, "👩‍🔬"])
def test_names_of_all_languages_are_taken(name: str) -> None:
    assert complaint(name) is None


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("", "0"),
        ("x" * 201, "201"),
        ("\x1b[2J", r"'\\x1b' after 0"),
        ("a\nb", r"'\\n' after 1"),
        ("ab\u202ecod.exe", r"'\\u202e' after 2"),
        ("\ud800", r"'\\ud800'"),
        ("a\x9b31m", r"'\\x9b'"),
    ],
)
def test_what_cannot_be_shown_is_named(name: str, word: str) -> None:
    found = complaint(name)
    assert found is not None
    assert word.replace("\\\\", "\\") in found
    assert found.isprintable()


@given(st.text(min_size=1, max_size=200))
def test_no_control_character_passes(name: str) -> None:
    if complaint(name) is None:
        assert not {unicodedata.category(character) for character in name} & {"Cc", "Cs", "Zl", "Zp"}
        assert not {unicodedata.bidirectional(character) for character in name} & {"LRE", "RLE", "LRO", "RLO", "PDF"}

"""The values of JSON are counted as a parser would find them, however the bytes are cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.bodies.shape import JsonLimits, JsonShape
from service.problems import ProblemError

NESTED = st.recursive(
    st.none() | st.integers() | st.text(alphabet='\\"[]{},: \n☃a'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='\\"{[,:'), inner, max_size=4),
    max_leaves=20,
)


def _depth(value: Any) -> int:
    if isinstance(value, list | dict):
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max((_depth(each) for each in inner), default=0)
    return 0


def _values(value: Any) -> int:
    """As `JsonShape` counts: one, and one for each comma and each array and object."""
    if isinstance(value, list | dict):
        inner = list(value.values() if isinstance(value, dict) else value)
        return 1 + max(0, len(inner) - 1) + sum(_values(each) for each in inner)
    return 0


def _names(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_names, value.values()))
    return sum(map(_names, value)) if isinstance(value, list) else 0


def _fits(text: bytes, limits: JsonLimits, size: int) -> bool:
    shape = JsonShape(limits)
    try:
        for start in range(0, len(text), size):
            shape.feed(text[start : start + size])
    except ProblemError:
        return False
    return True


@given(NESTED, st.integers(1, 9), st.booleans())
def test_the_limits_are_met_exactly(value: Any, size: int, ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii).encode()
    values, names, depth = 1 + _values(value), _names(value), _depth(value)
    assert _fits(text, JsonLimits(values, names, depth), size)
    assert not _fits(text, JsonLimits(values - 1, names, depth), size)
    if names:
        assert not _fits(text, JsonLimits(values, names - 1, depth), size)
    if depth:
        assert not _fits(text, JsonLimits(values, names, depth - 1), size)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_what_a_string_holds_is_no_value(size: int) -> None:
    text = json.dumps({"data": '\\\\"[[[[{{{{,,,,::::\\', "x": "\\"}).encode()
    assert _fits(text, JsonLimits(values=3, names=2, depth=1), size)

"""Cases of a test of which the round runs some, and those with less to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def cases(names: Iterable[str], *kept: str) -> list[ParameterSet]:
    """Return cases of a name and of whether the test does all that it can with it.

    The round does less with those of ``kept``; ``scripts/test --all`` does all with all names, too.
    """
    names = list(names)
    assert set(kept) <= set(names)
    small = [pytest.param(name, False, id=name) for name in kept]
    return small + [pytest.param(name, True, marks=pytest.mark.whole, id=f"{name}, all") for name in names]


def first(count: int, values: Sequence[Any]) -> list[Any]:
    """Return the values for `pytest.mark.parametrize`: the first ``count`` are in the round, the others in the whole.

    A tuple has a value for each of several parameters.
    """
    others = (value if isinstance(value, tuple) else (value,) for value in values[count:])
    return [*values[:count], *(pytest.param(*each, marks=pytest.mark.whole) for each in others)]

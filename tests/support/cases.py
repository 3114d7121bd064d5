"""Cases of a test of which the round runs some, and those with less to do."""

from __future__ import annotations

from collections.abc import Iterable

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

"""Each caller may have so much, and all together so much."""

from __future__ import annotations

import pytest

from service.api.shares import Shares
from service.problems import ProblemError


def _refused(shares: Shares, caller: str, amount: int = 1) -> ProblemError:
    with pytest.raises(ProblemError) as raised:
        shares.take(caller, amount)
    return raised.value


def test_one_caller_is_told_to_wait_for_its_own() -> None:
    shares = Shares("streams", each=2, total=10)
    with shares.hold("a"), shares.hold("a"):
        problem = _refused(shares, "a")
        assert (problem.status, problem.kind, problem.headers) == (429, "too-many-requests", {"Retry-After": "1"})
        assert "2 streams" in problem.detail
        shares.take("b")
    shares.take("a", 2)


def test_all_callers_together_have_a_limit() -> None:
    shares = Shares("streams", each=2, total=3)
    shares.take("a", 2)
    shares.take("b")
    problem = _refused(shares, "c")
    assert (problem.status, problem.kind, problem.headers) == (503, "busy", {"Retry-After": "2"})
    shares.give_back("a", 2)
    assert _refused(shares, "c", 3).status == 429
    shares.take("c", 2)

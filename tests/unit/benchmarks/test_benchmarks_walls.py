"""What the benchmark of walls makes of its figures."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.walls.report import missed, ratio, text


def turn(seconds: float) -> dict[str, Any]:
    return {"seconds": seconds, "latencies": [seconds / 10, seconds / 20]}


def figures(cost: float, rounds: int = 10) -> dict[str, Any]:
    """``cost``: of walls, as a factor; in every other round the machine takes twice as long."""
    return {
        "conditions": {"cpu": "a processor", "threads": 2, "date": "2030-01-31", "load": 0.0},
        "programs": 2,
        "missing": {"namespaces": "bwrap was not found"},
        "bounds": {"product": "arithmetic, short"},
        "rounds": [
            {
                "trials": {"product": {"none": turn(slow), "landlock": turn(slow * cost)}},
                "search": {"none": slow, "landlock": slow * cost},
            }
            for slow in (1.0, 2.0) * (rounds // 2)
        ],
    }


def test_a_slow_round_is_no_cost_of_walls() -> None:
    assert missed(figures(1.0)) == []
    assert "1.000 (1.000 to 1.000)" in text(figures(1.0))


def test_walls_that_cost_more_than_is_allowed_are_named() -> None:
    assert missed(figures(1 / 0.98)) == []
    assert missed(figures(1 / 0.95)) == [
        "landlock: measured latencies: 0.950 (0.950 to 0.950) instead of 0.97",
        "landlock: trials per second: 0.950 (0.950 to 0.950) instead of 0.97",
    ]


def test_a_level_that_the_machine_lacks_is_named_with_the_reason() -> None:
    assert "This machine does not support the level namespaces: bwrap was not found." in text(figures(1.0))


def test_the_interval_of_a_median_narrows_with_the_number_of_rounds() -> None:
    few, many = (ratio([1 + 0.001 * (place % 10) for place in range(count)]) for count in (10, 1000))
    assert few.median == many.median == pytest.approx(1.0045)
    assert few.high - few.low > many.high - many.low > 0

"""Children that nobody needs are asked to rest."""

from __future__ import annotations

import gc

from workers.child.idle import Rests


class Child:
    """``asked`` are the seconds of each time that it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, float]] = []

    def rest(self, seconds: float, unused_seconds: float) -> None:
        self.asked.append((seconds, unused_seconds))


def test_children_are_asked_as_long_as_they_are_there() -> None:
    rests = Rests(seconds=7.0, unused_seconds=3.0)
    first, second = Child(), Child()
    rests.look_after(first)
    rests.look_after(second)
    rests.look()
    assert first.asked == second.asked == [(7.0, 3.0)]
    told = first.asked
    del first
    gc.collect()
    rests.look()
    assert told == [(7.0, 3.0)]
    assert second.asked == [(7.0, 3.0)] * 2

"""Shares the budget among tasks: the next trials go to the task whose next trial is expected to save the most time.

The expected saving is the task's share of the model's time, times its recent relative gain per trial, with an
optimistic lower bound that shrinks as trials pass without a gain (after the gradient scheduler of Ansor, OSDI 2020).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tuner.search.config import SearchConfig


@dataclass(slots=True)
class Progress:
    """How far the search of one task has come.

    ``baseline`` is the latency (seconds) of the unscheduled function, and ``curve[i]`` the best one after trial i + 1;
    None while there is no latency.
    """

    weight: int
    baseline: float | None = None
    curve: list[float | None] = field(default_factory=list)
    proposed: int = 0
    exhausted: bool = False

    @property
    def best(self) -> float | None:
        return self.curve[-1] if self.curve else None

    @property
    def latency(self) -> float | None:
        """The latency of the best program so far, including the baseline."""
        return _least(self.baseline, self.best)

    def record(self, latency: float | None) -> None:
        """Add a finished trial; ``latency`` is None if it failed."""
        self.curve.append(_least(self.best, latency))

    def expected_saving(self, config: SearchConfig) -> float:
        """Return the seconds of model time that the next trial may save; infinite if nothing is known of the task."""
        if self.proposed == 0:
            return math.inf if self.baseline is None else self.weight * self.baseline * config.optimistic_gain
        recent = [self.baseline, *self.curve][-config.gain_window :]
        past, best = _least(recent[0], self.baseline), _least(recent[-1], self.baseline)
        if best is None:
            return self.weight / self.proposed
        gain = (past - best) / past / len(recent) if past is not None else 0.0
        return self.weight * best * max(gain, config.optimistic_gain / self.proposed)


def _least(one: float | None, other: float | None) -> float | None:
    return min((latency for latency in (one, other) if latency is not None), default=None)


def next_task(tasks: Sequence[Progress], batches: int, config: SearchConfig) -> int | None:
    """Return the index of the task that gets the next of the remaining ``batches``; None if every space is exhausted.

    If there are enough batches for all tasks without trials, these go first, the one with the largest saving before the
    others.
    """
    open_tasks = [i for i, task in enumerate(tasks) if not task.exhausted]
    untried = [i for i in open_tasks if tasks[i].proposed == 0]
    if 0 < len(untried) <= batches:
        open_tasks = untried
    return max(open_tasks, key=lambda i: (tasks[i].expected_saving(config), -i), default=None)

"""Which task gets the next trials: the one whose next trial promises to save the job the most time.

A task's promise is its share of the model's time now, times the relative gain per trial that it showed lately, with an
optimistic floor that shrinks as trials pass without a gain (after the gradient scheduler of Ansor, OSDI 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

_WINDOW = 24
"""Trials over which the recent gain is taken."""
_OPTIMISM = 0.5
"""A task of n trials is believed able to gain this / n per trial, however flat it was."""


@dataclass(slots=True)
class Progress:
    """How one task's search went so far.

    ``baseline`` is the latency (seconds) of the unscheduled function, ``curve[i]`` the best one after trial i+1; inf
    where there is none yet.
    """

    weight: int
    baseline: float = float("inf")
    curve: list[float] = field(default_factory=list)
    proposed: int = 0
    exhausted: bool = False

    def record(self, latency: float | None) -> None:
        best = self.curve[-1] if self.curve else float("inf")
        self.curve.append(best if latency is None else min(best, latency))

    def promise(self) -> float:
        """Seconds of model time that the next trial may save; infinite where nothing is known of the task."""
        if self.proposed == 0:
            return self.weight * self.baseline * _OPTIMISM
        recent = [self.baseline, *self.curve][-_WINDOW:]
        past, best = min(recent[0], self.baseline), min(recent[-1], self.baseline)
        if best == float("inf"):
            return self.weight / self.proposed
        gain = (past - best) / past / len(recent) if past != float("inf") else 0.0
        return self.weight * best * max(gain, _OPTIMISM / self.proposed)


def next_task(tasks: Sequence[Progress], batches: int) -> int | None:
    """Index of the task that gets the next of ``batches`` that are left; None where every space is exhausted.

    While there are enough for all that are untried, these go first, the heaviest before the others.
    """
    open_tasks = [i for i, task in enumerate(tasks) if not task.exhausted]
    untried = [i for i in open_tasks if tasks[i].proposed == 0]
    if 0 < len(untried) <= batches:
        open_tasks = untried
    return max(open_tasks, key=lambda i: (tasks[i].promise(), -i), default=None)

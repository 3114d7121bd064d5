"""Shares the budget among tasks: each gets a first candidate, then trials go where they are expected to save the most.

The expected saving is the task's share of the model's time, times its recent relative gain per trial, with an
optimistic lower bound that shrinks as trials pass without a gain (after the gradient scheduler of Ansor, OSDI 2020).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tuner.search.config import SearchConfig
from tuner.types import Workload

_UNTUNED_FLOPS = 1e9
"""Operations per second of an unscheduled function, roughly: one core adds up one product after the other."""
_UNTUNED_BYTES = 4e9
"""Bytes per second of an unscheduled function, roughly. Both only order functions of which none is measured."""
_TUNED_FLOPS = 1e11
"""Operations per second of a good schedule where no peak is known. Not tuned."""
_TUNED_BYTES = 2e10
"""Bytes per second of a good schedule. Not tuned: arguments that stay in caches are read faster."""


def untuned_seconds(workload: Workload) -> float:
    """Return an estimate of the seconds of one call of the unscheduled function, by its operations and bytes."""
    moved = sum(info.bytes for info in workload.args)
    return (workload.operation.flop or 0.0) / _UNTUNED_FLOPS + moved / _UNTUNED_BYTES


def tuned_seconds(workload: Workload, peak_flops: float | None) -> float:
    """Return an optimistic estimate of the seconds of one call of a function with a good schedule.

    ``peak_flops`` are operations per second that were measured on the machine; None if none were.
    """
    moved = sum(info.bytes for info in workload.args)
    return (workload.operation.flop or 0.0) / (peak_flops or _TUNED_FLOPS) + moved / _TUNED_BYTES


def negligible(tasks: Sequence[tuple[Workload, int]], peak_flops: float | None, config: SearchConfig) -> set[int]:
    """Return the indices of tasks that hardly matter to the model's time, unscheduled as they are.

    That is decided before anything is measured, by an estimate of the model's time with good schedules. Each task, a
    workload with its weight, takes less than `SearchConfig.trivial_share` of it, and all of them together at most
    `SearchConfig.trivial_shares`. A function that computes, but of which TVM cannot count the operations, is none.
    """
    whole = math.fsum(weight * tuned_seconds(workload, peak_flops) for workload, weight in tasks)
    slow = {
        i: weight * untuned_seconds(workload)
        for i, (workload, weight) in enumerate(tasks)
        if workload.operation.flop is not None or workload.operation.op == "copy"
    }
    return _least_of(slow, whole, config)


@dataclass(slots=True)
class Progress:
    """How far the search of one task has come.

    ``estimate`` is the latency (seconds) of the unscheduled function before it is measured, ``baseline`` after that,
    and ``curve[i]`` the best latency after trial i + 1; None while there is none. A `negligible` task is not searched,
    and has the latency of its estimate.
    """

    weight: int
    estimate: float = 0.0
    baseline: float | None = None
    curve: list[float | None] = field(default_factory=list)
    proposed: int = 0
    exhausted: bool = False
    negligible: bool = False

    @property
    def best(self) -> float | None:
        return self.curve[-1] if self.curve else None

    @property
    def latency(self) -> float | None:
        """The latency of the best program so far, including the baseline."""
        return _least(self.baseline, self.best) or (self.estimate if self.negligible else None)

    @property
    def untuned(self) -> float:
        """The latency of the unscheduled function, estimated until it is measured."""
        return self.estimate if self.baseline is None else self.baseline

    def record(self, latency: float | None) -> None:
        """Add a finished trial; ``latency`` is None if it failed."""
        self.curve.append(_least(self.best, latency))

    def expected_saving(self, config: SearchConfig) -> float:
        """Return the seconds of model time that the next trial of a task with trials may save."""
        recent = [self.baseline, *self.curve][-config.gain_window :]
        past, best = _least(recent[0], self.baseline), self.latency
        if best is None:
            best = self.estimate
        gain = (past - best) / past / len(recent) if past is not None else 0.0
        return self.weight * best * max(gain, config.optimistic_gain / self.proposed)


def _least(one: float | None, other: float | None) -> float | None:
    return min((latency for latency in (one, other) if latency is not None), default=None)


def next_task(tasks: Sequence[Progress], config: SearchConfig) -> int | None:
    """Return the index of the task that gets the next trials; None if no task can have any for now.

    Tasks without trials are first, the one with the longest unscheduled function before the others. Of a task whose
    first trials have not ended nothing is known: it waits for them. `trivial` tasks get no more than their first trials
    while another task can have more.
    """
    open_tasks = [i for i, task in enumerate(tasks) if not (task.exhausted or task.negligible)]
    untried = [i for i in open_tasks if tasks[i].proposed == 0]
    if untried:
        return max(untried, key=lambda i: (tasks[i].weight * tasks[i].untuned, -i))
    little = trivial(tasks, config)
    serious = [i for i in open_tasks if i not in little] or open_tasks
    known = [i for i in serious if tasks[i].curve]
    return max(known, key=lambda i: (tasks[i].expected_saving(config), -i), default=None)


def trivial(tasks: Sequence[Progress], config: SearchConfig) -> set[int]:
    """Return the indices of tasks that hardly matter to the model's time, as far as latencies are known.

    Each takes less than `SearchConfig.trivial_share` of it, and all of them together at most
    `SearchConfig.trivial_shares`.
    """
    seconds = {i: task.weight * task.latency for i, task in enumerate(tasks) if task.latency is not None}
    return _least_of(seconds, math.fsum(seconds.values()), config)


def _least_of(seconds: Mapping[int, float], total: float, config: SearchConfig) -> set[int]:
    """Return the keys of the least of some parts of a total, as `trivial` describes them."""
    found: set[int] = set()
    together = 0.0
    for i in sorted(seconds, key=seconds.__getitem__):
        together += seconds[i]
        if seconds[i] >= config.trivial_share * total or together > config.trivial_shares * total:
            break
        found.add(i)
    return found

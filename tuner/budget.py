"""The limits and goals of a search: one value from the wire to the loop, stored as one column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Budget:
    """A search ends at the first limit or goal that it reaches. None: there is no such limit or goal.

    ``max_trials`` counts candidates of all tasks together; baselines do not count. ``max_seconds`` is the time of the
    job: its search ends early enough for the closing races (`tuner.closing`). ``max_device_seconds`` is time of trials
    and baselines in measuring slots.
    ``target_latency_us`` is the latency of one run of the model, in microseconds, that is low enough: the sum over the
    tasks of weight times best latency. ``until="plateau"`` ends the search when it is not expected to gain much more
    (`tuner.search.plateau`).
    """

    max_trials: int
    max_seconds: float | None = None
    max_device_seconds: float | None = None
    target_latency_us: float | None = None
    until: Literal["plateau"] | None = None

    def trials_of_a_task(self, tasks: int) -> int:
        """Return the share of one of so many tasks, rounded up."""
        return math.ceil(self.max_trials / tasks)

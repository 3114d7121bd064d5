"""Deadlines relative to what others of the same module took: programs that take far longer are not fast ones."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Sequence

TIMES = 8.0
"""Multiple of the median build. Of 1,750 programs of 19 workloads, none of a workload's best six took over 6.4 times
the median. Fourteen programs took over 8 times the median, one of them 70 times: the fastest of these had 0.72 of its
workload's best speed, and ten had less than a third."""
LEAST_SECONDS = 3.0
"""Shortest deadline. Not tuned."""
ENOUGH = 8
"""Finished builds of a module before there is a deadline. Not tuned."""
CALLS = 100.0
"""A step of a measurement may take as long as so many calls at the cutoff. All samples of a program that is as fast are
less than a tenth of that. Not tuned."""
LEAST_MEASURING = 5.0
"""Shortest deadline of a measurement, in seconds: a busy machine may take as long to load a program. Not tuned."""
_LAST = 64
"""Latest builds that count, because a search moves on to programs of other sizes. Not tuned."""


class Patience:
    """Durations of builds by module."""

    def __init__(self) -> None:
        self._seconds: dict[str, deque[float]] = {}

    def observe(self, module_json: str, seconds: float) -> None:
        """Record a finished build of a module."""
        self._seconds.setdefault(module_json, deque(maxlen=_LAST)).append(seconds)

    def seconds(self, module_json: str, trace_json: str | None) -> float:
        """Return the deadline of the next build.

        Infinite for the unscheduled program, and until `ENOUGH` builds of the module have finished.
        """
        known = self._seconds.get(module_json, ())
        if trace_json is None or len(known) < ENOUGH:
            return math.inf
        return max(LEAST_SECONDS, TIMES * statistics.median(known))


def measuring_seconds(cutoffs: Sequence[float | None], most: float) -> float:
    """Return the deadline of each step of a batch's measurement.

    Args:
        cutoffs: of its candidates, in seconds per call; None or 0 of one that is measured whatever it takes.
        most: the deadline if there is such a candidate, in seconds.
    """
    known = [cutoff for cutoff in cutoffs if cutoff]
    return most if len(known) < len(cutoffs) else min(most, max(LEAST_MEASURING, CALLS * max(known)))

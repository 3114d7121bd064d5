"""How long a build may take: long against the others of the same module, for such programs are not the fast ones."""

from __future__ import annotations

import math
import statistics
from collections import deque

TIMES = 8.0
"""What the usual build takes. Of 1,750 programs of 19 workloads none of a workload's best six took over 6.4 times as
long. Fourteen took over 8 times as long, one 70 times: the best had 0.72 of its workload's speed, ten under a third."""
LEAST_SECONDS = 3.0
"""A build may always take so long."""
ENOUGH = 8
"""Builds that came to an end before it is known what is usual."""
_LAST = 64
"""Builds that count: a search moves on to programs of another size."""


class Patience:
    """What builds took, module by module."""

    def __init__(self) -> None:
        self._seconds: dict[str, deque[float]] = {}

    def observe(self, module_json: str, seconds: float) -> None:
        """A build of a module came to an end."""
        self._seconds.setdefault(module_json, deque(maxlen=_LAST)).append(seconds)

    def seconds(self, module_json: str, trace_json: str | None) -> float:
        """That the next build may take: infinite for the unscheduled program, and where too few came to an end."""
        known = self._seconds.get(module_json, ())
        if trace_json is None or len(known) < ENOUGH:
            return math.inf
        return max(LEAST_SECONDS, TIMES * statistics.median(known))

"""What is raced: short programs, which whatever disturbs the machine changes most."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.search.workloads import WORKLOADS as SEARCHED
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from tuner.space.builtin import builtin_space
from tuner.types import Workload

WORKLOADS = {"product of 128": SEARCHED["GMM-128"], "softmax of 256 x 256": SEARCHED["SFM-1"]}
_DRAWS = 2_000
"""Replays at most for the candidates of a workload; many are refused by the space."""


def candidates(workload: Workload, target_json: str, count: int) -> Iterator[str]:
    """Yield the traces of different programs that the search could propose, always the same: at most ``count``."""
    space = builtin_space(module_from_json(workload.module_json), target_from(target_json), 1)
    seen: set[str] = set()
    for seed in range(1, _DRAWS):
        schedule = space.replay(space.traces[seed % len(space.traces)], seed)
        trace = None if schedule is None else trace_to_json(schedule.trace)
        if trace is not None and trace not in seen:
            seen.add(trace)
            yield trace
        if len(seen) == count:
            return

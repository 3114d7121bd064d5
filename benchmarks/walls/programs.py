"""What is built and measured: workloads of short and long calls, bound by arithmetic and by memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import tvm
from tvm import te

from benchmarks.search.workloads import WORKLOADS as SEARCHED
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from tuner.space.builtin import builtin_space
from tuner.types import Workload
from tuner.workload import make_workload

_DRAWS = 2_000
"""Replays at most for the candidates of a workload; many are refused by the space."""


def _sum() -> tvm.tirx.PrimFunc:
    a, b = (te.placeholder((4096, 2048), "float32", name=name) for name in "AB")
    return te.create_prim_func([a, b, te.compute(a.shape, lambda i, j: a[i, j] + b[i, j], name="C")])


@dataclass(frozen=True, slots=True)
class Subject:
    """A workload; ``bound`` says by what, and how long its calls are."""

    name: str
    bound: str
    make: Callable[[], tvm.tirx.PrimFunc]

    def workload(self) -> Workload:
        return make_workload(self.make(), self.name)


SUBJECTS = (
    Subject("product of 128", "arithmetic, short", SEARCHED["GMM-128"]),
    Subject("product of 512", "arithmetic, long", SEARCHED["MM-512"]),
    Subject("softmax of 256 x 256", "memory, short", SEARCHED["SFM-1"]),
    Subject("sum of 4096 x 2048", "memory, long", _sum),
)


def candidates(workload: Workload, target_json: str, count: int) -> Sequence[str]:
    """Return the traces of different programs that the search could propose, always the same: at most ``count``."""
    return list(_drawn(workload, target_json, count))


def _drawn(workload: Workload, target_json: str, count: int) -> Iterator[str]:
    target = target_from(target_json)
    space = builtin_space(module_from_json(workload.module_json), target, 1)
    seen: set[str] = set()
    for seed in range(1, _DRAWS):
        schedule = space.replay(space.traces[seed % len(space.traces)], seed)
        trace = None if schedule is None else trace_to_json(schedule.trace)
        if trace is not None and trace not in seen:
            seen.add(trace)
            yield trace
        if len(seen) == count:
            return

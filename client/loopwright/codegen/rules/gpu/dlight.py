"""DLight's schedules for GPUs, other than the one that is the baseline: DLight itself takes the first that fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import tvm
from tvm.s_tir import Schedule, dlight
from tvm.s_tir.schedule import Trace
from tvm.target import Target
from tvm_ffi import structural_equal

from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.defaults import WITHOUT_TENSOR_CORES, default_schedule
from loopwright.codegen.program.intrinsics import only_intrinsics_of
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits

_SCHEDULE = "schedule"


class _ScalarMatmul(dlight.gpu.Matmul):
    """DLight's rule for products, without tensor cores where there are some."""

    def apply(self, func: tvm.tirx.PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        return super().apply(func, WITHOUT_TENSOR_CORES, tunable)


_RULES: tuple[dlight.ScheduleRule, ...] = (
    _ScalarMatmul(),
    dlight.gpu.GEMV(),
    dlight.gpu.Reduction(),
    dlight.gpu.GeneralReduction(),
    dlight.gpu.RMSNorm(),
    dlight.gpu.Transpose(),
    dlight.gpu.Fallback(),
)
"""The place of a rule is the value of the knob. LowBatchGEMV is not among them: it is for symbolic extents."""
_MISFITS = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError)
"""What DLight's rules raise for functions that they do not expect, instead of saying that they do not fit."""


class Dlight:
    """A rule without choices but one: which of DLight's rules. Its sketch is for one function and one target."""

    name = "dlight"
    version = 1

    def __init__(self, mod: tvm.IRModule, target: Target) -> None:
        with target, only_intrinsics_of(target):
            made = dict(_made(mod["main"], target))
        known = [func.body for _, func in prim_funcs(default_schedule(mod, target))]
        self._traces: dict[int, Trace] = {}
        for place, schedule in made.items():
            body = schedule.mod["main"].body
            if not any(structural_equal(body, other) for other in known):
                known.append(body)
                self._traces[place] = schedule.trace

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        return (Knob(_SCHEDULE, tuple(self._traces)),) if self._traces else ()

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        return [{_SCHEDULE: place} for place in self._traces]

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        self._traces[values[_SCHEDULE]].apply_to_schedule(schedule, remove_postproc=False)


def _made(func: tvm.tirx.PrimFunc, target: Target) -> Iterator[tuple[int, Schedule]]:
    for place, rule in enumerate(_RULES):
        try:
            schedule = rule.apply(func, target, False)
        except _MISFITS:
            continue
        if schedule is not None:
            yield place, schedule

"""The prior: how a function is scheduled of which no program was measured, on any machine, by what its rules know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tvm
from tvm.target import Target

from loopwright.codegen.program.schedule import new_schedule
from loopwright.codegen.rules import CPU_RULES, SHARING_RULES
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import MachineLimits
from loopwright.codegen.rules.analysis.sketches import Sketches
from loopwright.codegen.scheduling_lock import SCHEDULING
from loopwright.codegen.serialization import trace_to_list
from loopwright.codegen.weights.shared_weights import shares_weight

_REFUSALS = (RuntimeError, ValueError, TypeError, LookupError)
"""What TVM and rules raise if a schedule does not apply to a function."""


def own_sketches(mod: tvm.IRModule, machine: MachineLimits) -> Sketches | None:
    """Return the sketches of the rules that alone schedule a function; None if others may, or if none of them does.

    Several programs may have the function's weight: then the rules pack it in the same panels for all of them. Or its
    blocks run in steps, whose order the schedules of TVM's rules do not keep.
    """
    if shares_weight(mod["main"]):
        sketches = Sketches(mod, machine, SHARING_RULES)
        return sketches if sketches.traces else None
    program = AnalysedProgram.of(mod)
    return Sketches(mod, machine, CPU_RULES) if program is not None and program.has_steps else None


def choices(mod: tvm.IRModule, target: Target) -> Iterator[list[Any]]:
    """Yield traces ``[instructions, decisions]`` for a workload, the most promising first; none without a rule for it.

    Each is finished, as `loopwright.codegen.program.schedule.scheduled_module` takes it.
    """
    if target.kind.name != "llvm":
        return
    machine = MachineLimits.of(target)
    sketches = own_sketches(mod, machine) or Sketches(mod, machine, CPU_RULES)
    for trace in sketches.seeds():
        schedule = new_schedule(mod)
        try:
            with SCHEDULING:
                trace.apply_to_schedule(schedule, remove_postproc=True)
                sketches.finish(schedule)
        except _REFUSALS:
            continue
        yield trace_to_list(schedule.trace)

"""Programs with their best schedules: what `Client.apply` and `Client.compile` do once the bests are known. Needs TVM.

Neither uses TVM's own database lookup, which misses silently: each function is looked up by its digest here, and what
became of it is told in an `ApplyReport`.
"""

from __future__ import annotations

from typing import Any

import tvm

from loopwright.codegen import lowering, schedule
from loopwright.codegen.build import compile_module, executable_passes
from loopwright.codegen.functions import has_relax, prim_funcs
from loopwright.codegen.versions import check_codegen_version
from loopwright.codegen.weights import attach
from loopwright.database import Knowledge
from loopwright.program import Program
from loopwright.report import AppliedFunction, ApplyReport, Outcome


def lower(program: Program, target: tvm.target.Target, params: dict[str, Any] | None = None) -> tvm.IRModule:
    """Return a module as its PrimFuncs are tuned: legalised, folded and fused; without Relax it stays as it is.

    Weights are bound again afterwards, and what follows from them is computed: so the functions are those that were
    submitted without them.

    Args:
        params: values of more of ``main``'s parameters, bound by name; only a Relax module takes any.

    Raises:
        ValueError: ``params`` for a module without Relax functions.
    """
    if params and not has_relax(program.module):
        raise ValueError("params are bound to a Relax function, and this module has none")
    return attach(lowering.lower(program.module, target), {**program.weights, **(params or {})})


def apply(mod: tvm.IRModule, knowledge: Knowledge) -> tuple[tvm.IRModule, ApplyReport]:
    """Return a copy of a lowered module with each known function's best in it, and the report.

    Functions that are not known stay unscheduled.

    Raises:
        UnsupportedVersion: a best needs a newer version of this package.
    """
    functions, report = {}, []
    for var, func in prim_funcs(mod):
        known = knowledge.find(func)
        if known is None:
            outcome: Outcome = "missed"
        else:
            check_codegen_version(known.best.codegen_version)
            outcome = "baseline" if known.best.trace is None else "tuned"
            # The service's own copy is scheduled: it is the program that was certified.
            functions[var] = schedule.scheduled_function(func, known.module, known.best.trace, knowledge.target)
        report.append(AppliedFunction(str(var.name_hint), outcome, known.best if known else None))
    result = mod.clone()
    for var, func in functions.items():
        result.update_func(var, func)
    return result, ApplyReport(tuple(report))


def build(mod: tvm.IRModule, target: tvm.target.Target) -> Any:
    """Build what `apply` made: a ``relax.VMExecutable``, or a ``tvm.runtime.Module`` for a module without Relax.

    Functions without a schedule are left to TVM's default: on a GPU DLight's schedules, on a CPU the loops as they are.
    """
    return compile_module(schedule.with_default_schedules(mod, target), target)


def pipeline(knowledge: Knowledge) -> tvm.transform.Pass:
    """Return a pipeline for ``relax.build`` and ``tvm.compile``: legalises and fuses, puts the bests in, and lowers.

    It takes the place of TVM's own pipeline, for those who build by themselves. What it missed is logged.
    """

    @tvm.transform.module_pass(opt_level=0, name="LoopwrightApply")
    def applied(mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        tuned, report = apply(lower(Program(mod), knowledge.target), knowledge)
        report.log()
        return schedule.with_default_schedules(tuned, knowledge.target)

    return tvm.transform.Sequential([applied, *executable_passes(knowledge.target)])

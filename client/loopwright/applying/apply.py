"""Programs with their best schedules: what `Client.apply` and `Client.compile` do once the bests are known. Needs TVM.

Neither uses TVM's own database lookup, which misses silently: each function is looked up by its digest, and what became
of it is told in an `ApplyReport`.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm.target import Target

from loopwright.applying.lookup import Ask, LookedUp, look_up
from loopwright.applying.report import AppliedFunction, ApplyReport, Outcome
from loopwright.codegen.functions import has_relax, used_prim_funcs
from loopwright.codegen.graph.layout import layout_notes
from loopwright.codegen.program import schedule
from loopwright.codegen.program.build import compile_module, executable_passes
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.program.lowered_bounds import proving
from loopwright.codegen.versions import VECTOR_MATH_VERSION, check_codegen_version
from loopwright.codegen.weights.prepacking import fold_packing
from loopwright.frontends.program import Program


def apply(model: LookedUp) -> tuple[tvm.IRModule, ApplyReport]:
    """Return a copy of a lowered module with each known function's best in it, or else its prediction, and the report.

    Functions with neither stay unscheduled, as do functions that nothing calls, which the report leaves out.
    Weights that a best packs once are packed now, if the module has their values.

    Raises:
        UnsupportedVersion: a best needs a newer version of this package.
    """
    result, report = model.module.clone(), []
    for var, func in used_prim_funcs(model.module):
        best, prediction = model.bests.get(str(var.name_hint)), model.predictions.get(str(var.name_hint))
        outcome: Outcome = "missed"
        if best is not None:
            check_codegen_version(best.codegen_version)
            outcome = "baseline" if best.trace is None else "tuned"
            tuned = schedule.scheduled_function(
                func,
                normal_form(func),
                best.trace,
                model.target,
                exact_math=best.codegen_version < VECTOR_MATH_VERSION,
            )
            result.update_func(var, tuned)
        elif prediction is not None and prediction.trace is not None:
            outcome = "predicted"
            scheduled = schedule.scheduled_function(func, normal_form(func), prediction.trace, model.target)
            result.update_func(var, scheduled)
        report.append(AppliedFunction(str(var.name_hint), outcome, best, prediction))
    if has_relax(result):
        with proving():  # what packs runs now
            result = fold_packing(result)
    return result, ApplyReport(tuple(report), notes=layout_notes(model.module))


def build(mod: tvm.IRModule, target: Target) -> Any:
    """Build what `apply` made: a ``relax.VMExecutable``, or a ``tvm.runtime.Module`` for a module without Relax.

    Functions without a schedule are left to TVM's default: on a GPU DLight's schedules, on a CPU the loops as they are.
    """
    return compile_module(schedule.with_default_schedules(mod, target), target)


def pipeline(ask: Ask, target: Target | None) -> tvm.transform.Pass:
    """Return a pipeline for ``relax.build`` and ``tvm.compile``: legalises and fuses, puts the bests in, and lowers.

    It takes the place of TVM's own pipeline, for those who build by themselves. It asks the service when it runs, once
    for each module. What it missed is logged. ``target`` is as for `look_up`.
    """

    @tvm.transform.module_pass(opt_level=0, name="LoopwrightApply")
    def applied(mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        model = look_up(Program(mod), ask, target)
        tuned, report = apply(model)
        report.log()
        passes = tvm.transform.Sequential(executable_passes(model.target))
        return passes(schedule.with_default_schedules(tuned, model.target))

    return applied

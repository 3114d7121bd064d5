"""Programs with their best schedules: what `Client.apply` and `Client.compile` do once the bests are known. Needs TVM.

Neither uses TVM's own database lookup, which misses silently: each function is looked up by its digest, and what became
of it is told in an `ApplyReport`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import tvm
from tvm.target import Target

from loopwright.applying.lookup import Ask, LookedUp, look_up
from loopwright.applying.report import AppliedFunction, ApplyReport, Outcome
from loopwright.codegen.functions import has_relax, used_prim_funcs
from loopwright.codegen.graph.layout import layout_notes
from loopwright.codegen.graph.sources import places
from loopwright.codegen.program import schedule
from loopwright.codegen.program.build import compile_module, executable_passes
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.program.lowered_bounds import proving
from loopwright.codegen.source_text import shortened
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
    report = report_on(model)
    return applied(model, report), report


def report_on(model: LookedUp) -> ApplyReport:
    """Return what becomes of each function of a looked-up model. Raises UnsupportedVersion as `apply` does."""
    report, sources = [], places(model.module)
    for var, _ in used_prim_funcs(model.module):
        name = str(var.name_hint)
        best, prediction, source = model.bests.get(name), model.predictions.get(name), shortened(sources.get(name, ()))
        outcome: Outcome = "missed"
        if best is not None:
            check_codegen_version(best.codegen_version)
            outcome = "baseline" if best.trace is None else "tuned"
        elif prediction is not None and prediction.trace is not None:
            outcome = "predicted"
        report.append(AppliedFunction(name, outcome, best, prediction, source or None))
    return ApplyReport(tuple(report), notes=layout_notes(model.module))


def schedule_of(function: AppliedFunction) -> tuple[list[Any] | None, bool] | None:
    """Return the trace of a function's best or prediction, and whether it keeps the C library's functions.

    The trace is None for the unscheduled program as it was timed. Return None if the function has neither.
    """
    if function.best is not None:
        return function.best.trace, function.best.codegen_version < VECTOR_MATH_VERSION
    return None if function.prediction is None else (function.prediction.trace, False)


def applied(model: LookedUp, report: ApplyReport, without: Collection[str] = ()) -> tvm.IRModule:
    """Return the module with the schedules of a report; functions of the names ``without`` stay as they are."""
    result = model.module.clone()
    functions = {each.name: each for each in report.functions}
    for var, func in used_prim_funcs(model.module):
        function = functions[str(var.name_hint)]
        chosen = None if function.name in without else schedule_of(function)
        if chosen is not None:
            trace, exact_math = chosen
            scheduled = schedule.scheduled_function(func, normal_form(func), trace, model.target, exact_math=exact_math)
            result.update_func(var, scheduled)
    if not has_relax(result):
        return result
    with proving():  # what packs runs now
        return fold_packing(result)


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
    def scheduled(mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        model = look_up(Program(mod), ask, target)
        tuned, report = apply(model)
        report.log()
        passes = tvm.transform.Sequential(executable_passes(model.target))
        return passes(schedule.with_default_schedules(tuned, model.target))

    return scheduled

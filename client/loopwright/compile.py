"""Programs with their best schedules: what `Client.apply` and `Client.compile` do once the bests are at hand.

Neither goes through TVM's own database lookup, which misses without a word: each function is looked up by structure
here, and what became of it is told in an `ApplyReport`.
"""

from __future__ import annotations

import importlib
import logging
from dataclasses import dataclass
from typing import Any, Literal

from loopwright import ir
from loopwright.best import Best
from loopwright.database import Knowledge
from loopwright.program import Program, attach
from loopwright.units import ratio

logger = logging.getLogger("loopwright")

Outcome = Literal["tuned", "baseline", "missed"]


@dataclass(frozen=True, slots=True)
class AppliedFunction:
    """What became of one PrimFunc: ``tuned`` (a schedule was applied), ``baseline`` (known: TVM's own default is the
    best) or ``missed`` (nothing is known for the target). ``best`` is None exactly when it was missed."""

    name: str
    outcome: Outcome
    best: Best | None


@dataclass(frozen=True, slots=True)
class ApplyReport:
    """What hit and what missed, function by function, in order of name."""

    functions: tuple[AppliedFunction, ...]

    @property
    def hits(self) -> tuple[AppliedFunction, ...]:
        """The functions that the service knows: tuned, or best as they are."""
        return tuple(function for function in self.functions if function.outcome != "missed")

    @property
    def misses(self) -> tuple[AppliedFunction, ...]:
        return tuple(function for function in self.functions if function.outcome == "missed")

    def log(self) -> None:
        """Tell it: as a warning where something was missed."""
        logger.log(logging.WARNING if self.misses else logging.INFO, "%s", self)

    def __str__(self) -> str:
        lines = [f"{len(self.hits)} of {len(self.functions)} functions have a certified best"]
        for function in self.functions:
            gain = f", {ratio(function.best.speedup)} over the baseline" if function.best else ""
            lines.append(f"  {function.name}: {function.outcome}{gain}")
        return "\n".join(lines)


def lower(program: Program, target: Any, params: dict[str, Any] | None = None) -> Any:
    """A module as its PrimFuncs are tuned: Relax is legalised, folded and fused; without Relax it stays as it is.

    Weights are bound again afterwards, and what follows from them is computed: so the functions are those that were
    submitted without them.

    Args:
        params: values of more of ``main``'s parameters, bound by name; only a Relax module takes any.
    """
    if not ir.has_relax(program.module):
        if params:
            raise ValueError("params are bound to a Relax function, and this module has none")
        return program.module
    pipeline = importlib.import_module("tvm.relax").get_pipeline("zero")
    with target:
        try:
            lowered = pipeline(program.module)
        except RuntimeError:
            # People write extents of 32 bits, operators are legalised to 64, and TVM fails to fuse one with the other.
            lowered = pipeline(_kept_apart(program.module))
    return attach(lowered, {**program.weights, **(params or {})})


def _kept_apart(mod: Any) -> Any:
    """The module with its own PrimFuncs marked as opaque (``relax::OpPatternKind`` 8), so that none is fused."""
    apart = mod.clone()
    for var, func in ir.prim_funcs(mod):
        apart.update_func(var, func.with_attr("op_pattern", 8))
    return apart


def apply(mod: Any, knowledge: Knowledge) -> tuple[Any, ApplyReport]:
    """A copy of a lowered module with each known function's best in it, and the report. Others stay unscheduled."""
    functions, report = {}, []
    for var, func in ir.prim_funcs(mod):
        known = knowledge.find(func)
        if known is None:
            outcome: Outcome = "missed"
        elif known.best.trace is None:
            outcome = "baseline"
            functions[var] = _default_schedule(func, knowledge.target)
        else:
            outcome = "tuned"
            # Scheduled is the service's own copy, as the trace speaks of its names; the caller's may differ.
            schedule = ir.schedule_with(known.best.trace, known.module, knowledge.target)
            functions[var] = _named_as(func, schedule.mod["main"].with_attr("tirx.is_scheduled", True))
        report.append(AppliedFunction(str(var.name_hint), outcome, known.best if known else None))
    result = mod.clone()
    for var, func in functions.items():
        result.update_func(var, func)
    return result, ApplyReport(tuple(report))


def build(mod: Any, target: Any) -> Any:
    """Build what `apply` made: a ``relax.VMExecutable``, or a ``tvm.runtime.Module`` for a module without Relax.

    Functions without a schedule are left to TVM's default: on a GPU DLight's schedules, on a CPU the loops as they are.
    """
    tvm = ir.require_tvm()
    mod = mod.clone()
    for var, func in ir.prim_funcs(mod):
        mod.update_func(var, _default_schedule(func, target))
    if not ir.has_relax(mod):
        return tvm.compile(mod, target=target).mod
    relax = importlib.import_module("tvm.relax")
    return relax.build(mod, target, relax_pipeline=tvm.transform.Sequential(_lowering(target)))


def pipeline(knowledge: Knowledge) -> Any:
    """A pipeline for ``relax.build`` and ``tvm.compile``: legalises and fuses, puts the bests in, and lowers.

    It stands in the place of TVM's own pipeline, for those who build by themselves. What it missed is logged.
    """
    tvm = ir.require_tvm()

    @tvm.transform.module_pass(opt_level=0, name="LoopwrightApply")
    def applied(mod: Any, _: Any) -> Any:
        tuned, report = apply(lower(Program(mod), knowledge.target), knowledge)
        report.log()
        for var, func in ir.prim_funcs(tuned):
            tuned.update_func(var, _default_schedule(func, knowledge.target))
        return tuned

    return tvm.transform.Sequential([applied, *_lowering(knowledge.target)])


def _lowering(target: Any) -> list[Any]:
    """From scheduled PrimFuncs to what the virtual machine is built of.

    Legalising and fusing are done; doing them again could fuse a scheduled function into another.
    """
    relax = importlib.import_module("tvm.relax")
    return [
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
        *importlib.import_module("tvm.relax.pipeline").finalize_passes(target),
    ]


def _default_schedule(func: Any, target: Any) -> Any:
    """A GPU function that has no schedule yet under DLight's default; any other as it is."""
    if "gpu" not in target.keys or (func.attrs and func.attrs.get("tirx.is_scheduled")):
        return func
    dlight = importlib.import_module("tvm.s_tir.dlight")
    rules = (
        dlight.gpu.Matmul(),
        dlight.gpu.GEMV(),
        dlight.gpu.Reduction(),
        dlight.gpu.GeneralReduction(),
        dlight.gpu.Fallback(),
    )
    with target:
        scheduled = dlight.ApplyDefaultSchedule(*rules)(ir.as_main(func))
    return _named_as(func, scheduled["main"])


def _named_as(original: Any, scheduled: Any) -> Any:
    """``scheduled`` with the name and promises of the caller's function: a private one stays private."""
    attrs = original.attrs or {}
    for name in ("global_symbol", "op_pattern", "tirx.noalias"):
        scheduled = scheduled.with_attr(name, attrs[name]) if name in attrs else scheduled.without_attr(name)
    return scheduled

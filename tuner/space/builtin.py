"""The built-in design space: Loopwright's rules, and TVM's own schedule rules and post-processors for the target."""

from __future__ import annotations

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm.s_tir import Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.schedule import Trace
from tvm.target import Target
from tvm.tirx import IterVar

from loopwright.codegen.program.schedule import new_schedule
from loopwright.codegen.rules import CPU_RULES, EXPERIMENTAL_GPU_RULES, GPU_RULES
from loopwright.codegen.rules.analysis.rule import MachineLimits
from loopwright.codegen.rules.analysis.sketches import Sketches
from loopwright.codegen.rules.gpu.dlight import Dlight
from loopwright.codegen.rules.prior import own_sketches
from tuner.space import gpu_epilogues, tensor_core, tf32
from tuner.space.design_space import REFUSALS, DesignSpace
from tuner.workload import tune_context

_REDUCTIONS = 5
"""Reductions in one function for which TVM's rules try every cache and every split: up to five ways each, which
multiply. The 3,125 sketches of five take 3 s, those of twelve would take years."""
_INNERMOST = 64
"""Largest innermost tile, as in TVM's own rules."""


def builtin_space(mod: tvm.IRModule, target: Target, seed: int, *, experimental: bool = False) -> DesignSpace:
    """Return the sketches of Loopwright's rules beside those of TVM; ``seed`` in [1, 2^31-1].

    On cuda, the rules are others than on llvm, and the space has what else DLight can make of a function. What follows
    a reduction is inlined before TVM's rules see it (`tuner.space.gpu_epilogues`). Products on tensor cores also have
    sketches with software pipelines. Tensor cores for bfloat16 are a rule of TVM's with intrinsics of Loopwright's, and
    so are those for float32 where a function permits TF32. Experimental rules are in the space, and have seeds only if
    ``experimental``. A product with a weight that several programs have is scheduled by rules alone that pack it in
    the same panels, and a recurrent layer by its rule alone.
    """
    if target.kind.name == "llvm":
        machine, generator = MachineLimits.of(target), _generator(mod, target)
        if (own := own_sketches(mod, machine)) is not None:
            return DesignSpace(mod, tune_context(mod, target, generator, seed), (), own)
        return _with_stock(mod, target, seed, generator, Sketches(mod, machine, CPU_RULES))
    generator = tensor_core.bf16_generator(mod, target) or _generator(mod, target)
    rules = (*GPU_RULES, Dlight(mod, target))
    if experimental:
        sketches = Sketches(mod, MachineLimits.of(target), (*EXPERIMENTAL_GPU_RULES, *rules))
    else:
        sketches = Sketches(mod, MachineLimits.of(target), rules, without_seeds=EXPERIMENTAL_GPU_RULES)
    start = gpu_epilogues.inlined(mod)
    more = tf32.schedules(start.mod, target, seed)
    return _with_stock(mod, target, seed, generator, sketches, more=more, start=start, pipelines=True)


def stock_space(mod: tvm.IRModule, target: Target, seed: int) -> DesignSpace:
    """Return what TVM's PostOrderApply generates for llvm or cuda, and nothing else; ``seed`` in [1, 2^31-1]."""
    return _with_stock(mod, target, seed, _generator(mod, target), None)


def _with_stock(
    mod: tvm.IRModule,
    target: Target,
    seed: int,
    generator: ms.space_generator.PostOrderApply,
    sketches: Sketches | None,
    *,
    more: Sequence[Schedule] = (),
    start: Schedule | None = None,
    pipelines: bool = False,
) -> DesignSpace:
    """Return the space of a generator's traces and of ``more``, each after the steps of ``start``, and of sketches.

    The generator's post-processors finish them all. With ``pipelines``, products on tensor cores are pipelined, too.
    """
    begun, first = (start.mod, list(start.trace.insts)) if start else (mod, [])
    context = tune_context(begun, target, generator, seed)
    try:
        schedules = list(context.generate_design_space())
        if pipelines:
            schedules += tensor_core.pipelined(begun, target, seed)
        if target.kind.name == "cuda":
            for schedule in schedules:
                tensor_core.pad_bf16(schedule)
    except REFUSALS:
        # TVM's rules raise where a block maps the results of two reductions. What remains is the function as it is.
        schedules = [new_schedule(begun)]
    traces = [Trace([*first, *schedule.trace.insts], {}) for schedule in (*more, *schedules)]
    return DesignSpace(mod, context, traces, sketches)


def _generator(mod: tvm.IRModule, target: Target) -> ms.space_generator.PostOrderApply:
    """Return TVM's rules for the target, or, for a function of many reductions on llvm, those that do not multiply."""
    if target.kind.name != "llvm" or _reductions(mod) <= _REDUCTIONS:
        return ms.space_generator.PostOrderApply()
    rules = [
        # Without a cache for what it writes, it makes one sketch of each.
        ms.schedule_rule.MultiLevelTiling("SSRSRS", max_innermost_factor=_INNERMOST)
        if isinstance(rule, ms.schedule_rule.MultiLevelTiling)
        else rule
        for rule in ms.schedule_rule.ScheduleRule.create("llvm")
        if not isinstance(rule, ms.schedule_rule.AddRFactor)
    ]
    return ms.space_generator.PostOrderApply(sch_rules=rules, postprocs="from-target", mutator_probs="from-target")


def _reductions(mod: tvm.IRModule) -> int:
    """Return how many blocks reduce."""
    blocks: list[tvm.s_tir.SBlock] = []
    tvm_ffi.structural_walk(mod["main"].body, (tvm.s_tir.SBlock, blocks.append), order="post")
    return sum(any(var.iter_type == IterVar.CommReduce for var in block.iter_vars) for block in blocks)

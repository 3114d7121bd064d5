"""The built-in design space: Loopwright's rules, and TVM's own schedule rules and post-processors for the target."""

from __future__ import annotations

import tvm
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.schedule import Trace
from tvm.target import Target

from tuner.space.design_space import REFUSALS, DesignSpace
from tuner.space.rules import CPU_RULES
from tuner.space.rules.rule import Machine
from tuner.space.rules.sketches import Sketches
from tuner.workload import tune_context


def builtin_space(mod: tvm.IRModule, target: Target, seed: int) -> DesignSpace:
    """Return the sketches of Loopwright's rules (on llvm) beside those of TVM; ``seed`` in [1, 2^31-1]."""
    if target.kind.name != "llvm":
        return stock_space(mod, target, seed)
    return _with_stock(mod, target, seed, Sketches(mod, Machine.of(target), CPU_RULES))


def stock_space(mod: tvm.IRModule, target: Target, seed: int) -> DesignSpace:
    """Return what TVM's PostOrderApply generates for llvm or cuda, and nothing else; ``seed`` in [1, 2^31-1]."""
    return _with_stock(mod, target, seed, None)


def _with_stock(mod: tvm.IRModule, target: Target, seed: int, sketches: Sketches | None) -> DesignSpace:
    context = tune_context(mod, target, ms.space_generator.PostOrderApply(), seed)
    try:
        traces = [schedule.trace for schedule in context.generate_design_space()]
    except REFUSALS:
        # TVM's rules raise where a block maps the results of two reductions. What remains is the function as it is.
        traces = [Trace([], {})]
    return DesignSpace(mod, context, traces, sketches)

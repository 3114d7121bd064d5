"""The built-in design space: TVM's own schedule rules and post-processors for the target."""

from __future__ import annotations

import tvm
from tvm.s_tir import meta_schedule as ms
from tvm.target import Target

from tuner.space.design_space import DesignSpace
from tuner.workload import tune_context


def builtin_space(mod: tvm.IRModule, target: Target, seed: int) -> DesignSpace:
    """Spaces that PostOrderApply generates for llvm or cuda; ``seed`` in [1, 2^31-1]."""
    context = tune_context(mod, target, ms.space_generator.PostOrderApply(), seed)
    return DesignSpace(mod, context, [schedule.trace for schedule in context.generate_design_space()])

"""The schedule of a function that has no trace: TVM's default, which is the baseline that tuning competes with."""

from __future__ import annotations

import tvm
from tvm.s_tir import dlight
from tvm.target import Target

from loopwright.codegen.intrinsics import only_intrinsics_of


def default_schedule(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Return the module's functions under their default schedules.

    On a GPU that is DLight's; functions that are scheduled already are left alone. On a CPU it is the loops as they
    are.
    """
    if "gpu" not in target.keys:
        return mod
    rules = (
        dlight.gpu.Matmul(),
        dlight.gpu.GEMV(),
        dlight.gpu.Reduction(),
        dlight.gpu.GeneralReduction(),
        dlight.gpu.Fallback(),
    )
    with target, only_intrinsics_of(target):
        return dlight.ApplyDefaultSchedule(*rules)(mod)

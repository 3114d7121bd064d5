"""The schedule of a function that has no trace: TVM's default, which is the baseline that tuning competes with."""

from __future__ import annotations

import tvm
from tvm.s_tir import dlight
from tvm.target import Target

from loopwright.codegen.intrinsics import only_intrinsics_of

_WITHOUT_TENSOR_CORES = Target({"kind": "cuda", "arch": "sm_61"})


def default_schedule(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Return the module's functions under their default schedules.

    On a GPU that is DLight's; functions that are scheduled already are left alone. On a CPU it is the loops as they
    are.
    """
    if "gpu" not in target.keys:
        return mod
    rules = (
        _Matmul(),
        dlight.gpu.GEMV(),
        dlight.gpu.Reduction(),
        dlight.gpu.GeneralReduction(),
        dlight.gpu.Fallback(),
    )
    with target, only_intrinsics_of(target):
        return dlight.ApplyDefaultSchedule(*rules)(mod)


class _Matmul(dlight.gpu.Matmul):
    """DLight's rule for products, without tensor cores for products of int8: what it makes of them does not build.

    `InjectSoftwarePipeline` of TVM 0.27 refuses their fragments.
    """

    def apply(self, func: tvm.tirx.PrimFunc, target: Target, tunable: bool) -> tvm.s_tir.Schedule | None:
        if any(str(buffer.dtype) == "int8" for buffer in func.params):
            target = _WITHOUT_TENSOR_CORES
        return super().apply(func, target, tunable)

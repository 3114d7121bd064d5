"""The schedule of a function that has no trace: TVM's default, which is the baseline that tuning competes with."""

from __future__ import annotations

import tvm
from tvm.s_tir import dlight
from tvm.target import Target

from loopwright.codegen.program.intrinsics import only_intrinsics_of
from loopwright.codegen.target import most_shared_bytes

WITHOUT_TENSOR_CORES = Target({"kind": "cuda", "arch": "sm_61"})
_TENSOR_CORE_BYTES = 72 * 1024
"""Shared memory that DLight's kernels for tensor cores need, whatever the shape."""


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
        return dlight.ApplyDefaultSchedule(*rules)(mod.clone())


class _Matmul(dlight.gpu.Matmul):
    """DLight's rule for products, without tensor cores where what it makes for them does not build.

    `InjectSoftwarePipeline` of TVM 0.27 refuses the fragments of int8, and some GPUs have too little shared memory.
    """

    def apply(self, func: tvm.tirx.PrimFunc, target: Target, tunable: bool) -> tvm.s_tir.Schedule | None:
        most = most_shared_bytes(target)
        is_short = most is not None and most < _TENSOR_CORE_BYTES
        if is_short or any(str(buffer.dtype) == "int8" for buffer in func.params):
            target = WITHOUT_TENSOR_CORES
        return super().apply(func, target, tunable)

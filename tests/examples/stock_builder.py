"""How MetaSchedule's builder processes build in tests: as ever, without parsing the intrinsics of all vendors first."""

from __future__ import annotations

import tvm
from tvm.driver import build as tvm_build
from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock


def build(mod: tvm.IRModule, target: tvm.target.Target, params: object) -> tvm.runtime.Module:
    mod = RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(mod)
    return tvm_build(mod, target=target)

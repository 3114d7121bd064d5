"""Consent to TF32: an attribute of functions, and so a part of the workload that a function is.

What was found with TF32 has another digest than what was found without, so that it answers nobody who did not consent.
"""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.target import Target
from tvm.tirx import IterVar

from loopwright.codegen.errors import InvalidTarget
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.math_mode import TF32
from loopwright.codegen.target import compute_capability

MATH = "loopwright.math"
"""The attribute of a function, or of a module, whose value is a `MathMode`. There is none for ``fp32``."""
_FIRST = 80
"""Compute capability, times ten, of the first tensor cores that have TF32."""
_FACTOR = "float32"


def with_tf32(mod: tvm.IRModule) -> tvm.IRModule:
    """Return a module whose products of float32, lowered or not, may round their factors to TF32.

    Functions that multiply no matrices of float32 stay the workloads that they are.
    """
    marked = mod.with_attr(MATH, TF32)
    for var, func in prim_funcs(mod):
        if _multiplies(func):
            marked.update_func(var, func.with_attr(MATH, TF32))
    return marked


def keep_tf32(mod: tvm.IRModule, lowered: tvm.IRModule) -> tvm.IRModule:
    """Return what a module was lowered to, with the consent to TF32 if the module had it."""
    return with_tf32(lowered) if mod.attrs and mod.attrs.get(MATH) == TF32 else lowered


def permits_tf32(func: tirx.PrimFunc) -> bool:
    """Return whether a function may round factors to TF32."""
    return bool(func.attrs) and func.attrs.get(MATH) == TF32


def check_math(mod: tvm.IRModule, target: Target) -> None:
    """Check that a target can do what a module permits.

    Raises:
        InvalidTarget: the module permits TF32, and the target is no GPU that has it.
    """
    permits = bool(mod.attrs) and mod.attrs.get(MATH) == TF32
    if not (permits or any(permits_tf32(func) for _, func in prim_funcs(mod))):
        return
    if target.kind.name != "cuda":
        raise InvalidTarget(
            f"math tf32 is for cuda targets, and this one is of kind {target.kind.name}; leave math out, or choose a "
            "GPU, such as nvidia/nvidia-a100"
        )
    if compute_capability(target) < _FIRST:
        arch = target.attrs.get("arch") or "not given"
        raise InvalidTarget(
            f"math tf32 needs a GPU of compute capability 8.0 or later, and the target's arch is {arch}; "
            'leave math out, or choose such a GPU: nvidia/nvidia-a100, or {"kind": "cuda", "arch": "sm_80"}'
        )


def _multiplies(func: tirx.PrimFunc) -> bool:
    """Return whether a block sums products of float32 as a product of matrices, or a convolution, does.

    Each of the factors has an axis of the result that the other does not have. Otherwise, as in a depthwise
    convolution, there is nothing for tensor cores.
    """
    blocks: list[SBlock] = []
    tvm_ffi.structural_walk(func.body, (SBlock, blocks.append), order="pre")
    return any(_is_product(block) for block in blocks)


def _is_product(block: SBlock) -> bool:
    store = block.body
    if not isinstance(store, tirx.BufferStore) or not isinstance(store.value, tirx.Add):
        return False
    product = store.value.b
    if not isinstance(product, tirx.Mul) or str(store.buffer.dtype) != _FACTOR:
        return False
    factors = [each for each in (product.a, product.b) if isinstance(each, TensorLoad) and str(each.ty) == _FACTOR]
    if len(factors) != 2:
        return False
    spatial = {axis.var for axis in block.iter_vars if axis.iter_type != IterVar.CommReduce}
    first, second = (_used(factor) & spatial for factor in factors)
    return len(spatial) < len(block.iter_vars) and bool(first - second) and bool(second - first)


def _used(load: TensorLoad) -> set[Var]:
    found: list[Var] = []
    for index in load.indices:
        tvm_ffi.structural_walk(index, (Var, found.append), order="pre")
    return set(found)

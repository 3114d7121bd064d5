"""Tensor intrinsics for AVX2's vpmaddwd: exact products of bytes, two in each lane of a vector.

The instruction multiplies int16, and adds pairs of products in int32. Bytes are widened to int16 before it: those of
the right operand in a register, those of the left one in memory, once for all columns (`WIDE`). Neither a product nor
the sum of two overflows, unlike in vpmaddubsw, whose sums of two are int16.
"""
# mypy: ignore-errors
# TVMScript is Python in its form only.

from __future__ import annotations

import re

from tvm import tirx
from tvm.s_tir import TensorIntrin
from tvm.script import tirx as T

WIDE = "int16"
"""The dtype in which the left operand is kept."""
LANES, GROUP = 8, 2
"""Sums in a vector, and neighbours in depth whose products are added to each."""

_DTYPES = {"u8": "uint8", "s8": "int8", "s16": "int16"}
_NAME = re.compile(r"loopwright\.maddwd_(u8|s8|s16)(u8|s8)_8x2")


def intrinsic(left: str, right: str) -> str | None:
    """Return the name of the intrinsic ``C[8] += A[2] . B[8, 2]`` for operands of these dtypes; None if there is none.

    C is int32. A is kept in int16: ``left`` is the dtype that its values have, which is uint8, int8 or int16. B is
    uint8 or int8.
    """
    letters = {dtype: each for each, dtype in _DTYPES.items()}
    name = f"loopwright.maddwd_{letters.get(left)}{letters.get(right)}_8x2"
    return name if _NAME.fullmatch(name) else None


def register(name: str) -> bool:
    """Register the intrinsic of that name. Returns False if it is not the name of one of these."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    if TensorIntrin.get(name, allow_missing=True) is None:
        left, right = (_DTYPES[each] for each in match.groups())
        TensorIntrin.register(name, _description(left, right), _implementation(right))
    return True


def _description(left: str, right: str):
    def element(value):
        return value if left == WIDE else tirx.Cast(left, value)

    @T.prim_func(s_tir=True)
    def description(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (2,), "int16", offset_factor=1)
        B = T.match_buffer(b, (8, 2), right, offset_factor=1)
        C = T.match_buffer(c, (8,), "int32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:8], A[0:2], B[0:8, 0:2])
            T.writes(C[0:8])
            for i, k in T.grid(8, 2):
                with T.sblock("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + T.Cast("int32", element(A[vk])) * T.Cast("int32", B[vi, vk])

    return description


def _implementation(right: str):
    @T.prim_func(s_tir=True)
    def implementation(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (2,), "int16", offset_factor=1)
        B = T.match_buffer(b, (8, 2), right, offset_factor=1)
        C = T.match_buffer(c, (8,), "int32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:8], A[0:2], B[0:8, 0:2])
            T.writes(C[0:8])
            C[T.ramp(0, 1, 8)] = C[T.ramp(0, 1, 8)] + T.call_llvm_pure_intrin(
                T.llvm_lookup_intrinsic_id("llvm.x86.avx2.pmadd.wd"),
                T.reinterpret(T.broadcast(T.reinterpret(A.vload([0], "int16x2"), dtype="int32"), 8), dtype="int16x16"),
                T.Cast("int16x16", B.vload([0, 0], dtype=f"{right}x16")),
                dtype="int32x8",
            )

    return implementation

"""Tensor intrinsics for vpmaddwd (AVX2, AVX-512BW): exact products of bytes, two in each lane of a vector.

The instruction multiplies int16, and adds pairs of products in int32. Bytes are widened to int16 before it: those of
the right operand in a register, those of the left one in memory, once for all columns (`WIDE`). Neither a product nor
the sum of two overflows, unlike in vpmaddubsw, whose sums of two are int16.
"""
# mypy: ignore-errors
# TVMScript is Python in its form only.

from __future__ import annotations

import re

from tvm import tirx
from tvm.script import tirx as T

from loopwright.codegen.cpu.registering import register_once

WIDE = "int16"
"""The dtype in which the left operand is kept."""
GROUP = 2
"""Neighbours in depth whose products are added to each lane."""

_DTYPES = {"u8": "uint8", "s8": "int8", "s16": "int16"}
_NAME = re.compile(r"loopwright\.maddwd_(u8|s8|s16)(u8|s8)_(8|16)x2")
_INSTRUCTIONS = {8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}


def intrinsic(left: str, right: str, lanes: int = 8) -> str | None:
    """Return the name of the intrinsic ``C[lanes] += A[2] . B[lanes, 2]``; None if there is none for these dtypes.

    There are 8 lanes, or 16. C is int32. A is kept in int16: ``left`` is the dtype that its values have, which is
    uint8, int8 or int16. B is uint8 or int8.
    """
    letters = {dtype: each for each, dtype in _DTYPES.items()}
    name = f"loopwright.maddwd_{letters.get(left)}{letters.get(right)}_{lanes}x2"
    return name if _NAME.fullmatch(name) else None


def register(name: str) -> bool:
    """Register the intrinsic of that name. Returns False if it is not the name of one of these."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    left, right, lanes = _DTYPES[match[1]], _DTYPES[match[2]], int(match[3])
    register_once(name, lambda: (_description(left, right, lanes), _implementation(right, lanes)))
    return True


def _description(left: str, right: str, lanes: int):
    def element(value):
        return value if left == WIDE else tirx.Cast(left, value)

    @T.prim_func(s_tir=True)
    def description(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (2,), "int16", offset_factor=1)
        B = T.match_buffer(b, (lanes, 2), right, offset_factor=1)
        C = T.match_buffer(c, (lanes,), "int32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:lanes], A[0:2], B[0:lanes, 0:2])
            T.writes(C[0:lanes])
            for i, k in T.grid(lanes, 2):
                with T.sblock("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + T.Cast("int32", element(A[vk])) * T.Cast("int32", B[vi, vk])

    return description


def _implementation(right: str, lanes: int):
    instruction, pairs = _INSTRUCTIONS[lanes], 2 * lanes

    @T.prim_func(s_tir=True)
    def implementation(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (2,), "int16", offset_factor=1)
        B = T.match_buffer(b, (lanes, 2), right, offset_factor=1)
        C = T.match_buffer(c, (lanes,), "int32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:lanes], A[0:2], B[0:lanes, 0:2])
            T.writes(C[0:lanes])
            C[T.ramp(0, 1, lanes)] = C[T.ramp(0, 1, lanes)] + T.call_llvm_pure_intrin(
                T.llvm_lookup_intrinsic_id(instruction),
                T.reinterpret(
                    T.broadcast(T.reinterpret(A.vload([0], "int16x2"), dtype="int32"), lanes), dtype=f"int16x{pairs}"
                ),
                T.Cast(f"int16x{pairs}", B.vload([0, 0], dtype=f"{right}x{pairs}")),
                dtype=f"int32x{lanes}",
            )

    return implementation

"""Tensor intrinsics for the products of one row of int8 with a block of weights of uint8, in int32.

VNNI adds four products to each lane. AVX2 and AVX-512BW have vpmaddubsw, which adds two in int16 and saturates: it is
for weights of at most 4 bits. There, the sums of 32 neighbours in depth stay within int16, 32 / 2 * 15 * 128 = 30,720,
and are then added in int32. Larger weights take vpmaddwd, with the even and the odd bytes in vectors of int16.
"""
# mypy: ignore-errors
# TVMScript is Python in its form only.

from __future__ import annotations

import re

from tvm.script import tirx as T

from loopwright.codegen.cpu.registering import register_once

GROUP = 4
"""Neighbours in depth whose products are added to each lane."""
_MOST = 15
"""The largest weight of vpmaddubsw."""

_NAME = re.compile(r"loopwright\.block_dots_(vnni|maddubs|maddwd)_(8|16)x(\d{1,4})")
_AT_ONCE = 8
"""Groups whose products are added in int16."""
_MADDUBS = {8: "llvm.x86.avx2.pmadd.ub.sw", 16: "llvm.x86.avx512.pmaddubs.w.512"}
_MADDWD = {8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}


def intrinsic(lanes: int, groups: int, *, vnni: bool, most: int) -> str:
    """Return the name of the intrinsic ``C[lanes] += A[groups, 4] . B[groups, lanes, 4]``.

    There are 8 or 16 lanes. The elements of B are ``most`` at most.
    """
    instruction = "vnni" if vnni else "maddubs" if most <= _MOST else "maddwd"
    return f"loopwright.block_dots_{instruction}_{lanes}x{groups}"


def register(name: str) -> bool:
    """Register the intrinsic of that name. Returns False if it is not the name of one of these."""
    match = _NAME.fullmatch(name)
    if match is None or int(match[3]) < 2:
        return False
    lanes, groups = int(match[2]), int(match[3])
    sums = {"vnni": _with_vnni, "maddubs": _with_maddubs, "maddwd": _with_maddwd}[match[1]]
    register_once(name, lambda: (_description(lanes, groups), _implementation(lanes, groups, sums)))
    return True


def _description(lanes: int, groups: int):
    @T.prim_func(s_tir=True)
    def description(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (groups, 4), "int8", offset_factor=1)
        B = T.match_buffer(b, (groups, lanes, 4), "uint8", offset_factor=1)
        C = T.match_buffer(c, (lanes,), "int32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:lanes], A[0:groups, 0:4], B[0:groups, 0:lanes, 0:4])
            T.writes(C[0:lanes])
            for i, g, k in T.grid(lanes, groups, 4):
                with T.sblock("update"):
                    vi, vg, vk = T.axis.remap("SRR", [i, g, k])
                    C[vi] = C[vi] + T.Cast("int32", A[vg, vk]) * T.Cast("int32", B[vg, vi, vk])

    return description


def _implementation(lanes: int, groups: int, sums):
    @T.prim_func(s_tir=True)
    def implementation(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (groups, 4), "int8", offset_factor=1)
        B = T.match_buffer(b, (groups, lanes, 4), "uint8", offset_factor=1)
        C = T.match_buffer(c, (lanes,), "int32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:lanes], A[0:groups, 0:4], B[0:groups, 0:lanes, 0:4])
            T.writes(C[0:lanes])
            C[T.ramp(0, 1, lanes)] = sums(C.vload([0], dtype=f"int32x{lanes}"), A, B, lanes, groups)

    return implementation


def _with_vnni(total, A, B, lanes, groups):
    for group in range(groups):
        total = T.call_llvm_pure_intrin(
            T.llvm_lookup_intrinsic_id(f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"),
            total,
            T.reinterpret(B.vload([group, 0, 0], dtype=f"uint8x{4 * lanes}"), dtype=f"int8x{4 * lanes}"),
            _repeated(A, group, lanes),
            dtype=f"int32x{lanes}",
        )
    return total


def _with_maddubs(total, A, B, lanes, groups):
    for first in range(0, groups, _AT_ONCE):
        pairs = None
        for group in range(first, min(first + _AT_ONCE, groups)):
            product = T.call_llvm_pure_intrin(
                T.llvm_lookup_intrinsic_id(_MADDUBS[lanes]),
                T.reinterpret(B.vload([group, 0, 0], dtype=f"uint8x{4 * lanes}"), dtype=f"int8x{4 * lanes}"),
                _repeated(A, group, lanes),
                dtype=f"int16x{2 * lanes}",
            )
            pairs = product if pairs is None else pairs + product
        total = total + T.call_llvm_pure_intrin(
            T.llvm_lookup_intrinsic_id(_MADDWD[lanes]),
            pairs,
            T.broadcast(T.int16(1), 2 * lanes),
            dtype=f"int32x{lanes}",
        )
    return total


def _with_maddwd(total, A, B, lanes, groups):
    dtype, byte = f"int16x{2 * lanes}", T.broadcast(T.int16(8), 2 * lanes)
    for group in range(groups):
        left = T.reinterpret(_repeated(A, group, lanes), dtype=dtype)
        right = B.vload([group, 0, 0], dtype=f"uint8x{4 * lanes}")
        odd = T.reinterpret(right, dtype=f"u{dtype}") >> T.broadcast(T.uint16(8), 2 * lanes)
        for a, b in (
            ((left << byte) >> byte, T.reinterpret(right, dtype=dtype) & T.broadcast(T.int16(255), 2 * lanes)),
            (left >> byte, T.reinterpret(odd, dtype=dtype)),
        ):
            total = total + T.call_llvm_pure_intrin(
                T.llvm_lookup_intrinsic_id(_MADDWD[lanes]), a, b, dtype=f"int32x{lanes}"
            )
    return total


def _repeated(A, group, lanes):
    """Return four neighbours of the row in each lane."""
    four = T.reinterpret(A.vload([group, 0], "int8x4"), dtype="int32")
    return T.reinterpret(T.broadcast(four, lanes), dtype=f"int8x{4 * lanes}")

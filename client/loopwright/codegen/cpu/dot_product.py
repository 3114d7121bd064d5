"""Tensor intrinsics for instructions that add several products to each lane of a vector.

TVM has such an intrinsic for AVX-512 VNNI, with operand types that LLVM 22 refuses.
"""
# mypy: ignore-errors
# TVMScript is Python in its form only.

from __future__ import annotations

from tvm.script import tirx as T

from loopwright.codegen.cpu.registering import register_once

OPERANDS = ("uint8", "int8")
"""The dtypes of the operands."""
GROUP = 4
"""Neighbours in depth whose products are added to each lane."""

_NAMES = {8: "loopwright.dot_u8s8_8x4", 16: "loopwright.dot_u8s8_16x4"}
"""By lanes. AVX-512 VNNI has both; AVX-VNNI has 8."""


def intrinsic(lanes: int) -> str:
    """Return the name of the intrinsic ``C[lanes] += A[4] . B[lanes, 4]`` of uint8 and int8 in int32, for 8 or 16."""
    return _NAMES[lanes]


def register(name: str) -> bool:
    """Register the intrinsic of that name. Returns False if it is not the name of a dot product."""
    lanes = next((lanes for lanes, known in _NAMES.items() if known == name), None)
    if lanes is None:
        return False
    register_once(name, lambda: (_u8_s8_description(lanes), _u8_s8_vnni(lanes)))
    return True


def _u8_s8_description(lanes: int):
    @T.prim_func(s_tir=True)
    def description(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4,), "uint8", offset_factor=1)
        B = T.match_buffer(b, (lanes, 4), "int8", offset_factor=1)
        C = T.match_buffer(c, (lanes,), "int32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:lanes], A[0:4], B[0:lanes, 0:4])
            T.writes(C[0:lanes])
            for i, k in T.grid(lanes, 4):
                with T.sblock("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + T.Cast("int32", A[vk]) * T.Cast("int32", B[vi, vk])

    return description


def _u8_s8_vnni(lanes: int):
    instruction, products = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}", 4 * lanes

    @T.prim_func(s_tir=True)
    def implementation(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4,), "uint8", offset_factor=1)
        B = T.match_buffer(b, (lanes, 4), "int8", offset_factor=1)
        C = T.match_buffer(c, (lanes,), "int32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:lanes], A[0:4], B[0:lanes, 0:4])
            T.writes(C[0:lanes])
            C[T.ramp(0, 1, lanes)] = T.call_llvm_pure_intrin(
                T.llvm_lookup_intrinsic_id(instruction),
                C.vload([0], dtype=f"int32x{lanes}"),
                T.reinterpret(
                    T.broadcast(T.reinterpret(A.vload([0], "uint8x4"), dtype="int32"), lanes), dtype=f"int8x{products}"
                ),
                B.vload([0, 0], dtype=f"int8x{products}"),
                dtype=f"int32x{lanes}",
            )

    return implementation

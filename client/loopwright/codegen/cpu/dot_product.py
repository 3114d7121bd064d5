"""Tensor intrinsics for instructions that add several products to each lane of a vector.

TVM has such an intrinsic for AVX-512 VNNI, with operand types that LLVM 22 refuses.
"""
# mypy: ignore-errors
# TVMScript is Python in its form only.

from __future__ import annotations

from tvm.s_tir import TensorIntrin
from tvm.script import tirx as T

U8_S8 = "loopwright.dot_u8s8_16x4"
"""Name of the intrinsic ``C[16] += A[4] . B[16, 4]`` of uint8 and int8 in int32."""
OPERANDS = ("uint8", "int8")
"""The dtypes of its operands."""


def register(name: str) -> bool:
    """Register the intrinsic of that name. Returns False if it is not the name of a dot product."""
    if name != U8_S8:
        return False
    if TensorIntrin.get(name, allow_missing=True) is None:
        TensorIntrin.register(name, _u8_s8_description(), _u8_s8_vnni())
    return True


def _u8_s8_description():
    @T.prim_func(s_tir=True)
    def description(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4,), "uint8", offset_factor=1)
        B = T.match_buffer(b, (16, 4), "int8", offset_factor=1)
        C = T.match_buffer(c, (16,), "int32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:16], A[0:4], B[0:16, 0:4])
            T.writes(C[0:16])
            for i, k in T.grid(16, 4):
                with T.sblock("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + T.Cast("int32", A[vk]) * T.Cast("int32", B[vi, vk])

    return description


def _u8_s8_vnni():
    @T.prim_func(s_tir=True)
    def implementation(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4,), "uint8", offset_factor=1)
        B = T.match_buffer(b, (16, 4), "int8", offset_factor=1)
        C = T.match_buffer(c, (16,), "int32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:16], A[0:4], B[0:16, 0:4])
            T.writes(C[0:16])
            C[T.ramp(0, 1, 16)] = T.call_llvm_pure_intrin(
                T.llvm_lookup_intrinsic_id("llvm.x86.avx512.vpdpbusd.512"),
                C.vload([0], dtype="int32x16"),
                T.reinterpret(T.broadcast(T.reinterpret(A.vload([0], "uint8x4"), dtype="int32"), 16), dtype="int8x64"),
                B.vload([0, 0], dtype="int8x64"),
                dtype="int32x16",
            )

    return implementation

"""Tensor intrinsics for products of bfloat16 on tensor cores, which TVM 0.27 can generate but does not register."""

from __future__ import annotations

from collections.abc import Mapping

from tvm.s_tir import TensorIntrin

ELEMENT = "bfloat16"
_SUMS = "float32"
_SHARED = "shared.dyn"
_SIZE = (16, 16, 16)
_NAME = "loopwright.wmma_16x16x16_bf16_"


def register() -> None:
    """Register the intrinsics, once. TVM's own for cuda must be loaded: use `loopwright.codegen.program.intrinsics`."""
    from tvm.s_tir.tensor_intrin import cuda

    if TensorIntrin.get(_NAME + "load_a", allow_missing=True) is not None:
        return
    TensorIntrin.register(_NAME + "load_a", *cuda.get_wmma_load_intrin(*_SIZE, ELEMENT, _SHARED, False, False))
    for transposed in (False, True):
        suffix = _suffix(transposed)
        load = cuda.get_wmma_load_intrin(*_SIZE, ELEMENT, _SHARED, True, transposed)
        TensorIntrin.register(f"{_NAME}load_b{suffix}", *load)
        sync = cuda.get_wmma_sync_intrin(*_SIZE, ELEMENT, _SUMS, transposed)
        TensorIntrin.register(f"{_NAME}sync{suffix}", *sync)


def groups() -> list[Mapping[str, str]]:
    """Return the names of the intrinsics of a product, as `MultiLevelTilingTensorCore` takes them.

    The first group is for a second factor in rows, the other one for one in columns.
    """
    return [
        {
            "init": "wmma_fill_16x16x16_f32",
            "load_a": _NAME + "load_a",
            "load_b": f"{_NAME}load_b{_suffix(transposed)}",
            "compute": f"{_NAME}sync{_suffix(transposed)}",
            "store": "wmma_store_16x16x16_f32_shared_dyn",
        }
        for transposed in (False, True)
    ]


def _suffix(transposed: bool) -> str:
    return "_trans" if transposed else ""

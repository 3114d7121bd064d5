"""Traces that keep bytes in int16: the one change of a buffer's dtype that changes no value.

TVM's step for it asks nobody whether the new dtype has the values of the old one.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx

STEP = "UnsafeSetDType"
TO_INT16 = [0, "int16"]
"""The attributes of the step that is allowed: a block's only result, and its dtype."""
_WIDE, _BYTES = "int16", ("int8", "uint8", "bool")


def dtype_changes(trace: Any) -> list[list[Any]]:
    """Return the attributes of the steps of a trace ``[instructions, decisions]`` that change a buffer's dtype."""
    return [attributes for kind, _, attributes, _ in trace[0] if kind == STEP]


def lost_values(func: tirx.PrimFunc, scheduled: tirx.PrimFunc) -> list[str]:
    """Return what a schedule may have changed by keeping values in int16: nothing if all of them are bytes."""
    if any(str(store.buffer.dtype) == _WIDE for store in _stores(func)):
        return [f"{func.attrs['global_symbol']}, which has {_WIDE} itself"]
    return [
        f"the elements of {store.buffer.name}"
        for store in _stores(scheduled)
        if str(store.buffer.dtype) == _WIDE and not _is_byte(store.value)
    ]


def _stores(func: tirx.PrimFunc) -> list[Any]:
    stores: list[Any] = []
    tvm_ffi.structural_walk(func.body, (tirx.BufferStore, stores.append), order="post")
    return stores


def _is_byte(value: Any) -> bool:
    return isinstance(value, tvm.ir.prim.Cast) and str(value.value.ty) in _BYTES

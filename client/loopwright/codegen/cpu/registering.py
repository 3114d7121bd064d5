"""Registering the tensor intrinsics of this folder with TVM, whose names say what they are."""

from __future__ import annotations

from collections.abc import Callable

from tvm import tirx
from tvm.s_tir import TensorIntrin

from loopwright.codegen.scheduling_lock import SCHEDULING


def register_once(name: str, make: Callable[[], tuple[tirx.PrimFunc, tirx.PrimFunc]]) -> None:
    """Register an intrinsic unless it is registered already. ``make`` returns its description and implementation."""
    with SCHEDULING:
        if TensorIntrin.get(name, allow_missing=True) is None:
            TensorIntrin.register(name, *make())

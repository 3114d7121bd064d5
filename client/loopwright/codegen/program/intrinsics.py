"""Tensor intrinsics, without the twelve to twenty seconds that TVM takes to parse those of every vendor."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import tvm.s_tir
from tvm.target import Target

from loopwright.codegen.cpu import (
    block_dots,
    byte_transpose,
    column_reduction,
    dot_product,
    maddwd,
    nibble_dots,
    row_dots,
    row_reduction,
    tile_transpose,
    window_reduction,
)
from loopwright.codegen.gpu import bf16_tensor_core, tf32_tensor_core
from loopwright.codegen.scheduling_lock import SCHEDULING
from loopwright.codegen.script import skip_searches
from loopwright.codegen.target import triple

_PACKAGE = "tvm.s_tir.tensor_intrin"
_FAMILIES = (
    row_reduction,
    column_reduction,
    window_reduction,
    dot_product,
    maddwd,
    block_dots,
    nibble_dots,
    row_dots,
    byte_transpose,
    tile_transpose,
)
"""Of Loopwright's own intrinsics, a module each."""


def load_intrinsics(target: Target) -> None:
    """Register the tensor intrinsics that schedules for the target may name. Does nothing the second time."""
    with only_intrinsics_of(target):
        pass


def register_named(name: str) -> bool:
    """Register an intrinsic of Loopwright's own, which its name describes. Returns False if it is none of them."""
    return any(family.register(name) for family in _FAMILIES)


@contextmanager
def only_intrinsics_of(target: Target) -> Iterator[None]:
    """Register the target's intrinsics, and keep those of other vendors from being parsed within the block.

    Parts of TVM import its whole package of intrinsics when they are used (`TuneContext`, DLight's rules). Within the
    block, an empty package that finds the same submodules takes its place. Afterwards the real package can be imported
    as ever, with the submodules that are loaded already.
    """
    with SCHEDULING:
        substitute = None
        if _PACKAGE not in sys.modules:
            substitute = types.ModuleType(_PACKAGE)
            substitute.__path__ = [str(Path(tvm.s_tir.__file__).parent / "tensor_intrin")]
            sys.modules[_PACKAGE] = substitute
        try:
            vendor = _vendor(target)
            _load(f"{_PACKAGE}.{vendor}")
            if vendor == "cuda":
                bf16_tensor_core.register()
                tf32_tensor_core.register()
            yield
        finally:
            if substitute is not None and sys.modules.get(_PACKAGE) is substitute:
                del sys.modules[_PACKAGE]


def _load(module: str) -> None:
    """Import a submodule, the first time in a thread: on a notebook's stack CUDA's takes 5 s, on an empty one 2 s."""
    if module not in sys.modules:
        skip_searches()
        with ThreadPoolExecutor(max_workers=1) as empty_stack:
            empty_stack.submit(importlib.import_module, module).result()
    importlib.import_module(module)  # waits if another thread is still at it


def _vendor(target: Target) -> str:
    if target.kind.name == "cuda":
        return "cuda"
    return "arm_cpu" if triple(target).startswith(("aarch64", "arm")) else "x86"

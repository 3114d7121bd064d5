"""Blocks within loops, of PrimFuncs that are written with TVM's builder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T


@contextmanager
def nest(name: str, *sizes: Any) -> Iterator[list[Any]]:
    """Open a block within a loop over each extent, and give its axes."""
    with T.grid(*extents(*sizes)) as loops, T.sblock(name):
        each = [loops] if len(sizes) == 1 else loops
        yield [T.axis.spatial(extent, loop) for extent, loop in zip(extents(*sizes), each, strict=True)]


def extents(*sizes: Any) -> list[Any]:
    """Return extents as those of Relax's tensors: TVM fuses no others with them."""
    return [tirx.const(int(size), "int64") for size in sizes]

"""Blocks within loops, tasks and vectors, of PrimFuncs that are written with TVM's builder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

LANES = 16
"""Elements of the vectors of functions without a schedule: a multiple of the float32 in those of all processors."""
_UNROLLED = 4
"""Vectors at a time up to which there is no loop over them, so that they may be in registers."""


@contextmanager
def nest(name: str, *sizes: Any) -> Iterator[list[Any]]:
    """Open a block within a loop over each extent, and give its axes."""
    with T.grid(*extents(*sizes)) as loops, T.sblock(name):
        each = [loops] if len(sizes) == 1 else loops
        yield [T.axis.spatial(extent, loop) for extent, loop in zip(extents(*sizes), each, strict=True)]


@contextmanager
def loop_over_tasks(count: int, *, is_parallel: bool) -> Iterator[Any]:
    """Open a loop over tasks, which threads may share, and give the task's number."""
    with (T.parallel if is_parallel and count > 1 else T.serial)(*extents(count)) as task:
        yield task


def each_lane(count: int, compute: Callable[[Any], None]) -> None:
    """Compute for each of ``count`` neighbours, in vectors; for what is left of them, in a shorter one."""
    vectors, rest = divmod(count, LANES)
    if vectors > _UNROLLED:
        with T.serial(*extents(vectors)) as vector, T.vectorized(*extents(LANES)) as lane:
            compute(vector * LANES + lane)
    else:
        for vector in range(vectors):
            with T.vectorized(*extents(LANES)) as lane:
                compute(vector * LANES + lane)
    if rest == 1:
        compute(tirx.const(count - 1, "int64"))
    elif rest:
        with T.vectorized(*extents(rest)) as lane:
            compute(vectors * LANES + lane)


def extents(*sizes: Any) -> list[Any]:
    """Return extents as those of Relax's tensors: TVM fuses no others with them."""
    return [tirx.const(int(size), "int64") for size in sizes]

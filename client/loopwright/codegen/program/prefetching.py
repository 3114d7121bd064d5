"""Fetching what the end of a tile reads and writes while the sums of the tile are computed.

In a model, what a function adds to its sums and where it stores them are in a distant cache, and a tile is a few
elements of each of many rows, which no processor foresees. A schedule annotates the loop over tiles, and the fetches
are put in before the sums. They change no value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import SBlockRealize

PREFETCHES = "loopwright.prefetches"
"""The annotation of a loop over tiles, whose body computes sums and then stores a result of them; its value is 1."""

_READ, _WRITE = 0, 1
_NEAR, _DATA = 3, 1
"""Of ``llvm.prefetch``: into all caches, and not into the one of instructions."""


def with_prefetches(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a scheduled function in which annotated loops fetch what the last statement of their bodies accesses.

    That is the result, and the parameters that are read at the indices of the result: an address for each vector.
    """

    def fetching(loop: tirx.For) -> Any:
        if PREFETCHES not in loop.annotations:
            return loop
        statements = list(loop.body) if isinstance(loop.body, tirx.SeqStmt) else [loop.body]
        fetches = _fetches(statements[-1], func.params)
        body = loop.body if fetches is None else tirx.SeqStmt([fetches, *statements])
        others = {name: value for name, value in loop.annotations.items() if name != PREFETCHES}
        return tirx.For(
            loop.loop_var, loop.min, loop.extent, loop.kind, body, loop.thread_binding, others, loop.step, loop.span
        )

    body = tvm_ffi.structural_map(func.body, (tirx.For, fetching), order="post")
    return func if body.same_as(func.body) else func.with_body(body)


def _fetches(statement: Any, params: Sequence[Any]) -> Any:
    """Return loops that fetch what a block accesses; None for anything but loops over vectors of a result.

    The elements of a vector are neighbours in the result: a vector has one address. With fetches of one of 16
    elements that are scattered, a convolution of 72 to 288 channels took 1.09 times as long (AMD Zen 4, AVX-512).
    """
    loops: list[tirx.For] = []
    while isinstance(statement, tirx.For):
        loops.append(statement)
        statement = statement.body
    if not isinstance(statement, SBlockRealize) or not isinstance(statement.block.body, tirx.BufferStore):
        return None
    store = statement.block.body
    if not loops or loops[-1].kind != tirx.ForKind.VECTORIZED or not _is_any(store.buffer, params):
        return None
    *outer, lane = loops
    axes = {axis.var: value for axis, value in zip(statement.block.iter_vars, statement.iter_values, strict=True)}
    fresh = {loop.loop_var: tirx.Var(f"{loop.loop_var.name}_ahead", loop.loop_var.ty) for loop in outer}
    values = {**fresh, lane.loop_var: lane.min}
    indices = [_with(index, axes) for index in store.indices]
    if [_contains(index, lane.loop_var) for index in indices] != [False] * (len(indices) - 1) + [True]:
        return None
    place = [_with(index, values) for index in indices]

    def fetch(buffer: Any, access: int) -> Any:
        pointer = tirx.address_of(tirx.BufferLoad(buffer, place))
        return tirx.Evaluate(tirx.call_intrin("void", "tirx.prefetch", pointer, access, _NEAR, _DATA))

    loads: list[Any] = []
    tvm_ffi.structural_walk(store.value, (tvm.ir.TensorLoad, loads.append), order="post")
    read: list[Any] = []
    for load in loads:
        is_at_place = tvm_ffi.structural_equal(list(load.indices), list(store.indices))
        if is_at_place and _is_any(load.source, params) and not _is_any(load.source, read):
            read.append(load.source)
    fetches: Any = fetch(store.buffer, _WRITE)
    if read:
        fetches = tirx.SeqStmt([*(fetch(buffer, _READ) for buffer in read), fetches])
    if not tvm_ffi.structural_equal(statement.predicate, tirx.const(True, "bool")):
        fetches = tirx.IfThenElse(_with(statement.predicate, values), fetches, None)
    for loop in reversed(outer):
        fetches = tirx.For(fresh[loop.loop_var], loop.min, loop.extent, tirx.ForKind.UNROLLED, fetches)
    return fetches


def _with(node: Any, values: Mapping[Any, Any]) -> Any:
    """Return an expression with values in place of variables."""
    return tvm_ffi.structural_map(node, (tvm.ir.Var, lambda var: values.get(var, var)), order="post")


def _contains(expression: Any, var: Any) -> bool:
    found: list[Any] = []
    tvm_ffi.structural_walk(expression, (tvm.ir.Var, found.append), order="post")
    return _is_any(var, found)


def _is_any(node: Any, others: Sequence[Any]) -> bool:
    return any(node.same_as(other) for other in others)

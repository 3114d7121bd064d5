"""Accesses of several elements at a time, in a form for which TVM's code generation for CUDA writes code that compiles.

TVM 0.27 writes an access that it does not recognise as one of adjacent, aligned elements with a vector of indices. CUDA
has no vectors of more than four integers, so that the code for eight or sixteen elements does not compile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlockRealize
from tvm.tirx import BufferStore, For, ForKind, IntImm

from loopwright.codegen.functions import prim_funcs

_MOST_INDICES = 4
"""Integers in CUDA's longest vector."""
_IN_PAIRS = ("float16", "bfloat16")
"""Element types that TVM 0.27 has vectors of an even number of only."""
_MOST_PLACES = 2**31
"""Of buffers with more elements, TVM's indices of 32 bits do not tell the places."""


class _Form(Enum):
    """Where the elements of a vector are."""

    WHOLE = "at one place, or adjacent and aligned: TVM accesses them at once"
    EVEN = "at equal distances"
    UNEVEN = "anywhere else"


def with_short_gathers(mod: tvm.IRModule) -> tvm.IRModule:
    """Return a scheduled module in which no access of more than four elements has an index for each of them.

    Adjacent elements of an argument whose indices hide that they are adjacent are loaded at once. For example, a
    convolution that is scheduled as a product loads its weight as ``W[o, k // 9, k % 9 // 3, k % 3]``, which is the
    element ``o * 9 * C + k``. Vectors of elements that are apart, or whose alignment is unknown, become vectors of at
    most four; vectors that TVM cannot write at all become single elements.
    """
    result = mod.clone()
    for var, func in prim_funcs(mod):
        arguments = set(func.params)

        def rewrite(loop: For, arguments: set[Var] = arguments) -> For:
            is_vector = loop.kind == ForKind.VECTORIZED and isinstance(loop.extent, IntImm) and int(loop.extent) > 1
            return _short(_with_runs(loop, arguments)) if is_vector else loop

        body = tvm_ffi.structural_map(func.body, (For, rewrite), order="post")
        if not body.same_as(func.body):
            result.update_func(var, func.with_body(body))
    return result


def _with_runs(loop: For, arguments: set[Var]) -> For:
    """Return a vectorised loop that loads elements of arguments by their place, if only that shows them adjacent."""
    axes = _Axes(loop)

    def rewrite(load: TensorLoad) -> TensorLoad:
        place = _place(load.source, load.indices) if load.source in arguments else None
        if place is None or _form(axes.vectorised(place)) is _Form.WHOLE:
            return load
        simple = axes.analyzer.simplify(place)
        if _form(axes.vectorised(simple)) is not _Form.WHOLE:
            return load
        # The last index may exceed its extent: code generation knows places only, and nothing else looks at arguments.
        return tirx.BufferLoad(load.source, [*[0] * (len(load.indices) - 1), simple])

    body = tvm_ffi.structural_map(loop.body, (TensorLoad, rewrite), order="post")
    if body.same_as(loop.body):
        return loop
    return For(loop.loop_var, loop.min, loop.extent, loop.kind, body, annotations=loop.annotations)


def _short(loop: For) -> For:
    """Return a loop over shorter vectors, or single elements, in place of a vectorised loop that TVM cannot write."""
    lanes = int(loop.extent)
    part = min(_lanes(loop), default=lanes)
    if part == lanes:
        return loop
    if part == 1:
        return For(loop.loop_var, loop.min, loop.extent, ForKind.SERIAL, loop.body)
    outer, inner = (Var(f"{loop.loop_var.name}_{place}", loop.loop_var.ty) for place in range(2))
    body = _substituted(loop.body, {loop.loop_var: loop.min + outer * part + inner})
    return For(outer, 0, lanes // part, ForKind.SERIAL, For(inner, 0, part, ForKind.VECTORIZED, body))


def _lanes(loop: For) -> Iterator[int]:
    """Yield, for each access in a vectorised loop, how many elements TVM can write an access of; a part of all."""
    axes = _Axes(loop)
    lanes = int(loop.extent)
    accesses: list[TensorLoad | BufferStore] = []
    tvm_ffi.structural_walk(loop.body, ((TensorLoad, BufferStore), accesses.append), order="pre")
    for access in accesses:
        is_store = isinstance(access, BufferStore)
        buffer = access.buffer if is_store else access.source
        form = axes.form(buffer, access.indices, is_store=is_store)
        most = lanes if form is _Form.WHOLE else _MOST_INDICES
        if form is _Form.UNEVEN and _is_shared(buffer):
            most = 1  # TVM cannot tell where it needs barriers
        step = 2 if str(buffer.dtype) in _IN_PAIRS else 1
        yield max(part for part in (1, *range(step, most + 1, step)) if lanes % part == 0)


class _Axes:
    """The axes of the blocks within a vectorised loop."""

    def __init__(self, loop: For) -> None:
        self.analyzer = tvm.sym.Analyzer()
        """Knows the domain of each axis."""
        self._loop = loop
        self._values: dict[Var, Expr] = {}
        realizes: list[SBlockRealize] = []
        tvm_ffi.structural_walk(loop.body, (SBlockRealize, realizes.append), order="pre")
        for realize in realizes:
            for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
                self.analyzer.bind(axis.var, axis.dom)
                self._values[axis.var] = _substituted(value, self._values)

    def form(self, buffer: Var, indices: Sequence[Expr], *, is_store: bool) -> _Form:
        """Return where the elements of an access are; of buffers whose places are unknown, what leaves it alone.

        Rows in shared memory may be padded when they are allocated, so that elements of two rows are not adjacent.
        """
        if not _is_shared(buffer):
            place = _place(buffer, indices)
            return _Form.WHOLE if place is None else _form(self.vectorised(place), is_store=is_store)
        vectors = [self.vectorised(index) for index in indices]
        varying = [axis for axis, vector in enumerate(vectors) if not isinstance(vector, tirx.Broadcast)]
        if len(varying) != 1:
            return _Form.UNEVEN if varying else _Form.WHOLE
        form = _form(vectors[varying[0]], is_store=is_store)
        is_in_row = varying[0] == len(vectors) - 1
        return form if is_in_row or form is _Form.UNEVEN else _Form.EVEN

    def vectorised(self, place: Expr) -> Expr:
        """Return what `VectorizeLoop` makes of an index."""
        place = _substituted(place, self._values)
        free: list[Var] = []
        tvm_ffi.structural_walk(place, (Var, free.append), order="pre")
        result = tirx.decl_buffer((self._loop.extent,), place.ty, "places")
        var = self._loop.loop_var
        loop = For(var, 0, self._loop.extent, ForKind.VECTORIZED, BufferStore(result, place, [var]))
        func = tirx.PrimFunc([result, *(set(free) - {var})], loop)
        passes = [tirx.transform.StmtSimplify(), tirx.transform.VectorizeLoop(), tirx.transform.StmtSimplify()]
        return tvm.transform.Sequential(passes)(tvm.IRModule({"main": func}))["main"].body.value


def _place(buffer: Var, indices: Sequence[Expr]) -> Expr | None:
    """Return the distance of an element from the first; None if the buffer has strides, or extents that are unknown."""
    if buffer.strides or not all(isinstance(extent, IntImm) for extent in buffer.shape):
        return None
    if math.prod(map(int, buffer.shape)) > _MOST_PLACES:
        return None
    place = indices[0]
    for extent, index in zip(buffer.shape[1:], indices[1:], strict=True):
        place = place * extent + index
    return place


def _is_shared(buffer: Var) -> bool:
    return str(buffer.scope()).startswith("shared")


def _form(places: Expr, *, is_store: bool = False) -> _Form:
    """Return the form of a vector of places. Adjacent elements that are loaded must be aligned to be loaded at once."""
    if isinstance(places, tirx.Broadcast):
        return _Form.WHOLE
    if not isinstance(places, tirx.Ramp):
        return _Form.UNEVEN
    base = tvm.sym.Analyzer().modular_set(places.base)
    lanes = int(places.lanes)
    is_aligned = base.coeff % lanes == 0 and base.base % lanes == 0
    is_adjacent = isinstance(places.stride, IntImm) and int(places.stride) == 1
    return _Form.WHOLE if is_adjacent and (is_store or is_aligned) else _Form.EVEN


def _substituted(node: Any, values: Mapping[Var, Expr]) -> Any:
    return tvm_ffi.structural_map(node, (Var, lambda var: values.get(var, var)), order="post")

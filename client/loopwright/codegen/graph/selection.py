"""The first few elements of rows in their order, as of ``topk``, for CPUs: none of the others is sorted.

TVM sorts whole rows. Here a row is read once. The elements that were chosen so far are in order; one that comes before
the last of them takes its place among them, and the last one is dropped. Blocks of elements without such a one are
passed over: their extreme is found in vectors. Of equal elements the first one is taken, as by a stable sort.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax, tirx
from tvm.relax.expr_functor import mutator
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T
from tvm.target import Target

from loopwright.codegen.graph.nests import LANES, extents, loop_over_tasks
from loopwright.codegen.graph.rewriting import OPAQUE, CallRewriter, dtype_of, reshaped, rewrite_calls, shape_of

_MOST = 128
"""Elements that are chosen of a row, at most. Not tuned."""
_DTYPES = ("int32", "int64")
"""Of what is compared. Front ends make integers of floating-point numbers: with NaN, those have no order."""
_LONGEST = 2**31 - 1
"""Elements of a row, which 32 bits count."""
_BLOCK = 4 * LANES
"""Elements whose extreme is found at a time."""
_WORTH_THREADS = 2**15
"""Elements from which threads share the rows. Not tuned."""


def select_few(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Return the module with functions of its own for calls of ``topk`` on integers that choose few elements."""
    threads = int(target.attrs.get("num-cores", 1))
    return rewrite_calls(mod, lambda each: _Selections(each, threads))


@mutator
class _Selections(CallRewriter):
    def __init__(self, mod: tvm.IRModule, threads: int) -> None:
        super().__init__(mod)
        self.threads = threads

    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        shape = shape_of(call.args[0]) if name == "topk" else None
        if not shape or 0 in shape or dtype_of(call.args[0]) not in _DTYPES:
            return call
        axis, count = int(call.attrs.axis) % len(shape), int(call.attrs.k)
        if not 1 <= count <= min(_MOST, shape[axis]) or shape[axis] > _LONGEST:
            return call
        places = self._places(call, shape, axis)
        kind = str(call.attrs.ret_type)
        if kind == "indices":
            return places
        values = relax.op.gather_elements(call.args[0], self.emit(places), axis)
        return values if kind == "values" else relax.Tuple([self.emit(values), self.emit(places)])

    def _places(self, call: tvm.ir.Call, shape: tuple[int, ...], axis: int) -> Any:
        """Return the places of the chosen elements, which are found in rows of the last axis."""
        axes = [*(each for each in range(len(shape)) if each != axis), axis]
        data, rows = call.args[0], [shape[each] for each in axes[:-1]]
        if axis < len(shape) - 1:
            data = self.emit(relax.op.permute_dims(data, axes))
        selection = _Selection(
            math.prod(rows),
            shape[axis],
            int(call.attrs.k),
            dtype_of(data),
            str(call.attrs.dtype),
            bool(call.attrs.largest),
            self.threads,
        )
        function = self.builder_.add_func(selection.function(), "topk")
        data = self.emit(reshaped(data, (selection.rows, selection.length)))
        result = relax.TensorType((selection.rows, selection.count), selection.dtype)
        places = self.emit(relax.call_tir(function, [data], out_ty=result))
        places = self.emit(reshaped(places, (*rows, selection.count)))
        if axis < len(shape) - 1:
            places = self.emit(relax.op.permute_dims(places, [axes.index(each) for each in range(len(shape))]))
        return places


@dataclass(frozen=True, slots=True)
class _Selection:
    """The places, in ``dtype``, of the ``count`` largest, or smallest, elements of each of ``[rows, length]``."""

    rows: int
    length: int
    count: int
    source: str
    dtype: str
    is_largest: bool
    threads: int

    def function(self) -> tirx.PrimFunc:
        is_long = self.rows * self.length >= _WORTH_THREADS
        with IRBuilder() as builder, T.prim_func(is_private=True, s_tir=True):
            T.func_name("topk")
            T.func_attr({"op_pattern": OPAQUE, "tirx.noalias": True})
            data = T.arg("data", T.Buffer(extents(self.rows, self.length), self.source))
            places = T.arg("places", T.Buffer(extents(self.rows, self.count), self.dtype))
            with loop_over_tasks(self.rows, is_parallel=self.threads > 1 and is_long) as row, T.sblock("topk"):
                self._row(lambda place: data[row, place] if self.is_largest else ~data[row, place], places, row)
        return builder.get()

    def _row(self, key: Callable[[Any], Any], places: Any, row: Any) -> None:
        """Choose elements of a row by their keys, of which the largest are taken."""
        chosen = _Chosen.new(self.count, self.source)
        with T.serial(*extents(self.count)) as place:
            chosen.enter(key(place), place)
        blocks, rest = divmod(self.length - self.count, _BLOCK)

        def look_at(start: Any, count: int) -> None:
            with T.serial(*extents(count)) as each, T.If(chosen.is_below(key(start + each))), T.Then():
                chosen.enter(key(start + each), start + each)

        if blocks:
            extreme = T.sblock_alloc_buffer(extents(LANES), self.source)
            with T.serial(*extents(blocks)) as block:
                start = self.count + block * _BLOCK
                for part in range(_BLOCK // LANES):
                    with T.vectorized(*extents(LANES)) as i:
                        value = key(start + part * LANES + i)
                        T.buffer_store(extreme, tirx.max(extreme[i], value) if part else value, [i])
                for half in (8, 4, 2):
                    with T.vectorized(*extents(half)) as i:
                        T.buffer_store(extreme, tirx.max(extreme[i], extreme[half + i]), [i])
                with T.If(chosen.is_below(tirx.max(extreme[0], extreme[1]))), T.Then():
                    look_at(start, _BLOCK)
        if rest:
            look_at(tirx.const(self.count + blocks * _BLOCK, "int64"), rest)
        with T.serial(*extents(self.count)) as place:
            T.buffer_store(places, chosen.places[1 + place].astype(self.dtype), [row, place])


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The chosen elements in order, each with its place, from 1 on. A slot without an element has the place -1.

    At 0 is what comes before all elements; behind the last slot are some that fill a vector.
    """

    count: int
    keys: Any
    places: Any
    width: int

    @staticmethod
    def new(count: int, dtype: str) -> _Chosen:
        """Allocate the slots in the block that is open, without elements."""
        width = next(lanes for lanes in (4, 8, LANES) if lanes >= min(count, LANES))
        slots = 1 + -(-count // width) * width
        chosen = _Chosen(
            count,
            T.sblock_alloc_buffer(extents(slots), dtype),
            T.sblock_alloc_buffer(extents(slots), "int32"),
            width,
        )
        with T.serial(*extents(slots)) as slot:
            T.buffer_store(chosen.keys, tirx.Select(slot == 0, tirx.max_value(dtype), tirx.min_value(dtype)), [slot])
            place = tirx.Select(slot == 0, tirx.const(0, "int32"), tirx.const(-1, "int32"))
            T.buffer_store(chosen.places, place, [slot])
        return chosen

    def is_below(self, key: Any) -> Any:
        """Return whether the last slot has a lesser key."""
        return self.keys[self.count] < key

    def enter(self, key: Any, place: Any) -> None:
        """Put an element behind those whose keys are not less, and move the others by a slot."""
        place = place.astype("int32")
        for vector in reversed(range((int(self.keys.shape[0]) - 1) // self.width)):
            # The places first: which of them move follows from the keys as they were. What places of empty slots become
            # changes nothing for the keys there, which are the least.
            for values, new in ((self.places, place), (self.keys, key)):
                with T.vectorized(*extents(self.width)) as i:
                    slot = 1 + vector * self.width + i
                    moved = tirx.Select(self._stays(slot - 1, key), new, values[slot - 1])
                    T.buffer_store(values, tirx.Select(self._stays(slot, key), values[slot], moved), [slot])

    def _stays(self, slot: Any, key: Any) -> Any:
        return tirx.all(self.places[slot] >= 0, self.keys[slot] >= key)

"""Cumulative sums and products for CPUs: in vectors along the axes behind the scanned one, or several rows at a time.

TVM's own scans read one element after another along the scanned axis. If it is not the last axis, each element is in
another cache line; if it is, each addition waits for the one before. Elements are combined in the same order here, so
results are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import tvm
from tvm import relax, tirx
from tvm.relax.expr_functor import mutator
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T
from tvm.target import Target

from loopwright.codegen.graph.nests import each_lane, extents, loop_over_tasks
from loopwright.codegen.graph.rewriting import OPAQUE, CallRewriter, dtype_of, reshaped, rewrite_calls, shape_of

_OPERATIONS: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "cumsum": (lambda a, b: a + b, 0),
    "cumprod": (lambda a, b: a * b, 1),
}
"""What combines two elements, and its identity."""
_IN_REGISTERS = 64
"""Results of a part up to which those of the last step are kept in registers. Of longer parts they are read again."""
_LONG = 512
"""Elements of the axes behind from which parts are longer: they are read in order. With 77, of which 13 are no whole
vector, results that were read again took five times as long as in registers (AMD Zen 3)."""
_PART = 2048
"""Elements of a part of the axes behind, at most: two steps of it stay in the first cache. Not tuned."""
_TOGETHER = 8
"""Rows that are scanned at a time along the last axis: as many additions do not wait for each other. Not tuned."""
_WORTH_THREADS = 2**15
"""Elements from which threads share a scan. Not tuned."""


def scan_in_vectors(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Return the module with functions of its own for cumulative sums and products of static shapes."""
    threads = int(target.attrs.get("num-cores", 1))
    return rewrite_calls(mod, lambda each: _Scans(each, threads))


@mutator
class _Scans(CallRewriter):
    def __init__(self, mod: tvm.IRModule, threads: int) -> None:
        super().__init__(mod)
        self.threads = threads

    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        shape = shape_of(call.args[0]) if name in _OPERATIONS else None
        if not shape or 0 in shape:
            return call
        if call.attrs.axis is None:
            parts = (1, math.prod(shape), 1)
        else:
            axis = int(call.attrs.axis) % len(shape)
            parts = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
        scan = _Scan(name, *parts, dtype_of(call.args[0]), dtype_of(call), bool(call.attrs.exclusive), self.threads)
        function = self.builder_.add_func(scan.function(), name)
        data = self.emit(reshaped(call.args[0], parts))
        result = relax.call_tir(function, [data], out_ty=relax.TensorType(parts, scan.dtype))
        return reshaped(self.emit(result), shape_of(call) or ())


@dataclass(frozen=True, slots=True)
class _Scan:
    """A scan along the second axis of ``[before, length, behind]``.

    ``source`` and ``dtype`` are those of the elements and of the results. An exclusive scan leaves out the element at
    the place of a result.
    """

    name: str
    before: int
    length: int
    behind: int
    source: str
    dtype: str
    is_exclusive: bool
    threads: int

    def function(self) -> tirx.PrimFunc:
        shape = extents(self.before, self.length, self.behind)
        with IRBuilder() as builder, T.prim_func(is_private=True, s_tir=True):
            T.func_name(self.name)
            T.func_attr({"op_pattern": OPAQUE, "tirx.noalias": True})
            data = T.arg("data", T.Buffer(shape, self.source))
            result = T.arg("result", T.Buffer(shape, self.dtype))
            if self.behind == 1:
                self._rows(data, result)
            else:
                self._columns(data, result)
        return builder.get()

    def _rows(self, data: Any, result: Any) -> None:
        """Scan some rows at a time."""
        groups, rest = divmod(self.before, _TOGETHER)
        if groups:
            with self._tasks(groups) as group:
                self._steps(data, result, [(group * _TOGETHER + row, 0) for row in range(_TOGETHER)], 1)
        if rest:
            self._steps(data, result, [(groups * _TOGETHER + row, 0) for row in range(rest)], 1)

    def _columns(self, data: Any, result: Any) -> None:
        """Scan parts of the axes behind, each in one pass over its steps."""
        share = _PART if self.before >= self.threads else self.behind // self.threads // _IN_REGISTERS * _IN_REGISTERS
        width = min(_PART, max(_IN_REGISTERS, share)) if self.behind >= _LONG else _IN_REGISTERS
        parts, rest = divmod(self.behind, width)
        last = rest % _IN_REGISTERS
        for first, count, size in ((0, parts, width), (parts * width, 1, rest - last), (self.behind - last, 1, last)):
            if count and size:
                with self._tasks(self.before * count) as task:
                    self._steps(data, result, [(task // count, first + task % count * width)], size)

    def _tasks(self, count: int) -> Any:
        is_long = self.before * self.length * self.behind >= _WORTH_THREADS
        return loop_over_tasks(count, is_parallel=self.threads > 1 and is_long)

    def _steps(self, data: Any, result: Any, places: list[tuple[Any, Any]], width: int) -> None:
        """Scan ``width`` neighbours from each place ``(before, behind)`` on."""
        combine, identity = _OPERATIONS[self.name]

        def element(step: Any, row: Any, column: Any) -> Any:
            return data[row, step - 1 if self.is_exclusive else step, column].astype(self.dtype)

        with T.sblock(self.name):
            in_registers = width <= _IN_REGISTERS
            last = T.sblock_alloc_buffer(extents(len(places), width), self.dtype) if in_registers else None

            def take(step: Any, number: int, offset: Any, *, is_first: bool) -> None:
                row, start = places[number]
                column = start + offset
                if is_first:
                    value = tirx.const(identity, self.dtype) if self.is_exclusive else element(step, row, column)
                else:
                    before = result[row, step - 1, column] if last is None else last[number, offset]
                    value = combine(before, element(step, row, column))
                if last is not None:
                    T.buffer_store(last, value, [number, offset])
                    value = last[number, offset]
                T.buffer_store(result, value, [row, step, column])

            def take_all(step: Any, *, is_first: bool) -> None:
                for number in range(len(places)):
                    each_lane(width, partial(take, step, number, is_first=is_first))

            take_all(tirx.const(0, "int64"), is_first=True)
            if self.length > 1:
                with T.serial(*extents(1, self.length)) as step:
                    take_all(step, is_first=False)

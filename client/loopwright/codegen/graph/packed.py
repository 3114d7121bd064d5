"""Weights that are decoded where they are read: dequantised, unpacked or widened by the function that uses them.

A decoded copy of a weight of 4 bits is eight times as large, and a product with few rows takes the time of reading
it. TVM fuses what follows a product, not what feeds it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax, te, tirx
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.blocks import Blocks
from loopwright.codegen.graph.int8_rows import STEPS, largest_magnitudes, permits_int8_activations, rounded
from loopwright.codegen.graph.rewriting import (
    OUTPUT_FUSABLE,
    CallRewriter,
    dtype_of,
    op_name,
    permutation_of,
    reshaped,
    rewrite_calls,
    shape_of,
)
from loopwright.codegen.graph.views import numbers

_Index = Sequence[Any]
_Read = Callable[[Sequence[te.Tensor], _Index], Any]
"""From the tensors that are stored, and an index, to the element of what is decoded."""

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
    "divide": lambda x, y: x / y,
    "left_shift": lambda x, y: x << y,
    "multiply": lambda x, y: x * y,
    "right_shift": lambda x, y: x >> y,
    "subtract": lambda x, y: x - y,
}
RESHAPES = frozenset(("reshape", "expand_dims", "squeeze", "flatten"))
_DECODING = frozenset(
    (*BINARY, *RESHAPES, "astype", "broadcast_to", "concat", "permute_dims", "stack", "strided_slice", "take")
)
_USES = {"matmul": 1, "take": 0}
"""Operators that read weights, and the place of the weight among their operands."""
PANEL = 16
"""Columns whose scales of a block are neighbours, followed by those of their next block: as many as the longest vector
has lanes. So the scales of a vector of columns are one stream of memory, beside that of its numbers. Where those of all
columns were neighbours, products of one row with 4 and 8 bits took 1.1 and 1.25 times as long (AMD Zen 4)."""
_SMALLER = 0.9
"""What is stored, as a share of what is decoded, is at most this much. Not tuned."""


def packed_weights(func: relax.Function) -> tuple[list[tvm.ir.GenericConst], list[tvm.ir.GenericConst]]:
    """Return the constants that products and lookups of a function decode, which are smaller than what is decoded.

    Returns:
        All of them; and those that are scales or zero points ``[columns, blocks]`` of products.
    """
    blocks = func.body.blocks if isinstance(func.body, relax.SeqExpr) else ()
    bindings = [each for block in blocks for each in block.bindings if isinstance(each, relax.VarBinding)]
    values = {each.var: each.value for each in bindings}
    found: list[tvm.ir.GenericConst] = []
    scales: list[tvm.ir.GenericConst] = []
    for value in values.values():
        if (name := str(op_name(value))) not in _USES:
            continue
        weight = value.args[_USES[name]]
        tables = stored_tables(weight, lambda expr: values.get(expr, expr) if isinstance(expr, relax.Var) else expr)
        if tables is None or not all(isinstance(each, tvm.ir.GenericConst) for each in tables):
            continue
        found += [each for each in tables if not any(each.same_as(other) for other in found)]
        if name == "matmul":
            largest = max(map(_size, tables), default=0)
            scales += [each for each in tables if _is_of_blocks(each, shape_of(weight) or ()) and _size(each) < largest]
    return found, scales


def stored_tables(weight: Any, value: Callable[[Any], Any]) -> list[Any] | None:
    """Return the tensors that are stored of a weight, but those that are computed; None if it is not decoded.

    Args:
        value: returns what a variable is bound to; other expressions, and parameters, as they are.
    """
    stored = _stored(weight, value)
    return None if stored is None else [each for each in stored if _sequence(each) is None]


def _is_of_blocks(table: tvm.ir.GenericConst, weight: Sequence[int]) -> bool:
    shape = shape_of(table) or ()
    return len(shape) == 2 and shape[0] == weight[-1] and shape[1] > 1


def shift_counts(func: relax.Function) -> list[tvm.ir.GenericConst]:
    """Return the constants by which integers are shifted in equal steps: part of the program, as numbers are."""
    counts: list[tvm.ir.GenericConst] = []

    def visit(node: Any) -> None:
        if op_name(node) in ("left_shift", "right_shift") and _sequence(node.args[1]) is not None:
            counts.append(node.args[1])

    relax.analysis.post_order_visit(func, visit)
    return counts


def decode_in_place(mod: tvm.IRModule, *, apart: bool) -> tvm.IRModule:
    """Make one function of a product or a lookup and the decoding of its weight.

    Args:
        apart: whether numbers of 4 bits are decoded in a block of their own for products of float32, too, which rules
            for CPUs look for.
    """
    return rewrite_calls(mod, lambda given: _Decoded(given, apart))


def _stored(weight: Any, value: Callable[[Any], Any]) -> list[Any] | None:
    """Return the tensors of which a weight is decoded; None if it is something else, or they are not smaller."""
    leaves: list[Any] = []

    def collect(expr: Any) -> bool:
        bound = value(expr)
        if isinstance(bound, relax.Tuple):
            return all(map(collect, bound.fields))
        if isinstance(bound, tvm.ir.GenericConst | relax.Var):
            if shape_of(bound) is None:
                return False
            if not any(bound.same_as(leaf) for leaf in leaves):
                leaves.append(bound)
            return True
        if op_name(bound) not in _DECODING:
            return False
        if op_name(bound) in ("concat", "stack"):
            return collect(bound.args[0])
        return all(map(collect, _tensors(bound)))

    if not collect(weight) or _size(weight) * _SMALLER < sum(map(_size, leaves)):
        return None
    return leaves


def _tensors(call: tvm.ir.Call) -> list[Any]:
    return [operand for operand in call.args if isinstance(getattr(operand, "ty", None), relax.TensorType)]


def _size(tensor: Any) -> float:
    """Return the bytes of a tensor."""
    return math.prod(shape_of(tensor) or ()) * tvm.runtime.DataType(dtype_of(tensor)).bits / 8


@mutator
class _Decoded(CallRewriter):
    def __init__(self, mod: tvm.IRModule, apart: bool) -> None:
        super().__init__(mod)
        self.apart = apart
        self.may_round = permits_int8_activations(mod)

    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        if name not in _USES or shape_of(call) is None:
            return call
        place = _USES[name]
        weight, other = call.args[place], call.args[1 - place]
        stored = _stored(weight, self.value)
        if stored is None or shape_of(weight) is None or shape_of(other) is None:
            return call
        reader = _Reader(self, stored)
        read = reader.read(weight)
        if read is None:
            return call
        if name == "take":
            return self._lookup(call, read, reader)
        return self._product(call, read, reader)

    def _product(self, call: tvm.ir.Call, read: _Read, reader: _Reader) -> Any:
        left, right = (shape_of(operand) or () for operand in call.args)
        if len(right) != 2 or len(left) < 2:
            return call
        shape, dtype = shape_of(call) or (), dtype_of(call)

        def compute(rows: te.Tensor, *stored: te.Tensor) -> te.Tensor:
            k = te.reduce_axis((0, left[-1]), "k")

            def element(*i: Any) -> Any:
                return te.sum(rows(*i[:-1], k).astype(dtype) * read(stored, (k, i[-1])).astype(dtype), axis=k)

            return te.compute(shape, element, name="matmul")

        blocks = Blocks.of(
            lambda stored, k, j: read(stored, (k, j)), [self._like(leaf) for leaf in reader.leaves], right
        )
        if blocks is None or not dtype == dtype_of(call.args[0]) == "float32":
            return self._called(compute, "matmul", call.args[0], *reader.leaves)
        integers = self._product_of_integers(call, blocks, reader)
        if integers is not None:
            return integers
        return self._called(
            lambda rows, *stored: blocks.product(rows, stored, shape, apart=self.apart),
            "matmul",
            call.args[0],
            *reader.leaves,
        )

    def _product_of_integers(self, call: tvm.ir.Call, blocks: Blocks, reader: _Reader) -> Any:
        """Return the product if its rows are integers with one scale for a row, or for each block of it; or None."""
        rows, shape = self._integer_rows(call.args[0], blocks), shape_of(call) or ()
        step = 1.0
        if rows is None and self.may_round:
            rows, step = self._rounded_rows(call.args[0], blocks), 1 / STEPS
        if rows is None:
            return None
        likes = [self._like(leaf) for leaf in (*rows, *reader.leaves)]
        if blocks.product_of_integers(likes[0], likes[1], likes[2:], shape, step) is None:
            return None
        return self._called(
            lambda data, scales, *stored: blocks.product_of_integers(data, scales, stored, shape, step),
            "matmul",
            *rows,
            *reader.leaves,
        )

    def _integer_rows(self, expr: Any, blocks: Blocks) -> tuple[Any, Any] | None:
        """Return the int8 ``[…, depth]`` and scales ``[…, blocks]`` or ``[…, 1]`` that rows are products of."""
        outer = (shape_of(expr) or ())[:-1]
        while (call := self.call_of(expr, "reshape")) is not None:
            expr = call.args[0]
        call = self.call_of(expr, "multiply")
        if call is None:
            return None
        for wide, scale in (call.args, reversed(call.args)):
            widened, shape = self.call_of(wide, "astype"), shape_of(wide) or ()
            if widened is None or dtype_of(widened.args[0]) != "int8":
                continue
            if shape_of(scale) != (*shape[:-1], 1) or shape[-1] not in (blocks.size, blocks.depth):
                continue
            return (
                self.emit(reshaped(widened.args[0], (*outer, blocks.depth))),
                self.emit(reshaped(scale, (*outer, blocks.depth // shape[-1]))),
            )
        return None

    def _rounded_rows(self, expr: Any, blocks: Blocks) -> tuple[Any, Any]:
        """Return rows of float32 as int8 ``[…, depth]``, and magnitudes ``[…, blocks]`` of `STEPS`, rounded."""
        outer = (shape_of(expr) or ())[:-1]
        parts = self.emit(relax.op.reshape(expr, [-1, blocks.size]))
        magnitude = self.emit(self.builder_.call_te(largest_magnitudes, parts, primfunc_name_hint="largest_magnitudes"))
        integers, _ = rounded(self.emit, parts, magnitude)
        return (
            self.emit(relax.op.reshape(integers, [*outer, blocks.depth])),
            self.emit(relax.op.reshape(magnitude, [*outer, blocks.depth // blocks.size])),
        )

    def _like(self, leaf: Any) -> te.Tensor:
        return te.placeholder(shape_of(leaf) or (), dtype_of(leaf))

    def _lookup(self, call: tvm.ir.Call, read: _Read, reader: _Reader) -> Any:
        table, places = (shape_of(operand) or () for operand in call.args)
        if call.attrs.axis is None:
            return call
        axis, shape = int(call.attrs.axis) % len(table), shape_of(call) or ()

        def compute(indices: te.Tensor, *stored: te.Tensor) -> te.Tensor:
            def element(*i: Any) -> Any:
                place = indices(*i[axis : axis + len(places)])
                inside = tirx.max(tirx.min(place, tirx.const(table[axis] - 1, place.ty)), tirx.const(0, place.ty))
                return read(stored, (*i[:axis], inside, *i[axis + len(places) :]))

            return te.compute(shape, element, name="take")

        return self._called(compute, "take", call.args[1], *reader.leaves)

    def _called(self, compute: Callable[..., te.Tensor | None], name: str, *operands: Any) -> Any:
        attributes = {"op_pattern": OUTPUT_FUSABLE} if name == "matmul" else None
        return self.builder_.call_te(compute, *operands, primfunc_name_hint=name, primfunc_attrs=attributes)


class _Reader:
    """Reads elements of a tensor from the ``leaves`` of which it is decoded."""

    def __init__(self, rewriter: CallRewriter, stored: Sequence[Any]) -> None:
        self.rewriter = rewriter
        self.leaves = [leaf for leaf in stored if _sequence(leaf) is None]

    def read(self, expr: Any) -> _Read | None:
        value = self.rewriter.value(expr)
        for place, leaf in enumerate(self.leaves):
            if value.same_as(leaf):
                return _stored_at(place)
        if isinstance(value, tvm.ir.GenericConst):
            return _sequence(value)
        name = str(op_name(value))
        if name in ("concat", "stack"):
            return self._joined(name, value)
        operands = _tensors(value)
        reads = [self.read(operand) for operand in operands]
        if any(each is None for each in reads):
            return None
        return self._computed(name, value, operands, [each for each in reads if each is not None])

    def _computed(self, name: str, call: tvm.ir.Call, operands: Sequence[Any], reads: Sequence[_Read]) -> _Read | None:
        read, shape = reads[0], shape_of(operands[0]) or ()
        if name in BINARY:
            shapes = [shape_of(operand) or () for operand in operands]
            return lambda stored, i: BINARY[name](
                *(each(stored, _broadcast(i, own)) for each, own in zip(reads, shapes, strict=True))
            )
        if name == "astype":
            dtype = dtype_of(call)
            return lambda stored, i: read(stored, i).astype(dtype)
        if name == "broadcast_to":
            return lambda stored, i: read(stored, _broadcast(i, shape))
        if name in RESHAPES:
            own = shape_of(call) or ()
            return lambda stored, i: read(stored, _reshaped(i, own, shape))
        if name == "permute_dims":
            axes = permutation_of(call)
            return lambda stored, i: read(stored, [i[axes.index(axis)] for axis in range(len(axes))])
        if name == "strided_slice":
            starts = _starts(call, shape)
            if starts is None:
                return None
            return lambda stored, i: read(
                stored, [place + start if start else place for place, start in zip(i, starts, strict=True)]
            )
        if name == "take" and call.attrs.axis is not None and len(shape_of(operands[1]) or ()) == 1:
            axis, last = int(call.attrs.axis) % len(shape), shape[int(call.attrs.axis)] - 1

            def element(stored: Sequence[te.Tensor], i: _Index) -> Any:
                place = reads[1](stored, (i[axis],)).astype("int64")
                inside = tirx.max(tirx.min(place, tirx.IntImm("int64", last)), tirx.IntImm("int64", 0))
                return read(stored, (*i[:axis], inside, *i[axis + 1 :]))

            return element
        return None

    def _joined(self, name: str, call: tvm.ir.Call) -> _Read | None:
        """Return a reader of tensors one behind the other along an axis, or along an axis of its own."""
        parts = self.rewriter.value(call.args[0])
        if not isinstance(parts, relax.Tuple) or call.attrs.axis is None:
            return None
        reads = [self.read(part) for part in parts.fields]
        axis = int(call.attrs.axis) % len(shape_of(call) or ())
        widths = [1 if name == "stack" else (shape_of(part) or ())[axis] for part in parts.fields]
        ends = np.cumsum(widths).tolist()
        if any(each is None for each in reads):
            return None

        def element(stored: Sequence[te.Tensor], i: _Index) -> Any:
            result = None
            for each, end, width in reversed(list(zip(reads, ends, widths, strict=True))):
                assert each is not None
                inner = i[:axis] if name == "stack" else [*i[:axis], i[axis] - (end - width)]
                found = each(stored, [*inner, *i[axis + 1 :]])
                result = found if result is None else te.if_then_else(i[axis] < end, found, result)
            return result

        return element


def _stored_at(place: int) -> _Read:
    return lambda stored, i: stored[place](*i)


def _sequence(leaf: Any) -> _Read | None:
    """Return how to compute a constant: a number, or integers in equal steps along one axis; None for any other."""
    if not isinstance(leaf, tvm.ir.GenericConst):
        return None
    array, dtype = leaf.value.numpy(), dtype_of(leaf)
    if array.ndim == 0:
        value = array.item()
        return lambda stored, i: tirx.const(value, dtype)
    axes = [axis for axis, extent in enumerate(array.shape) if extent > 1]
    flat = array.reshape(-1)
    if len(axes) != 1 or array.dtype.kind not in "iu" or array.size > 64:
        return None
    start, step = int(flat[0]), int(flat[1]) - int(flat[0])
    if flat.tolist() != [start + step * place for place in range(flat.size)]:
        return None
    return lambda stored, i: (i[axes[0]] * step + start).astype(dtype)


def _broadcast(index: _Index, shape: Sequence[int]) -> list[Any]:
    own = index[len(index) - len(shape) :]
    return [0 if extent == 1 else place for place, extent in zip(own, shape, strict=True)]


def _reshaped(index: _Index, shape: Sequence[int], source: Sequence[int]) -> list[Any]:
    """Return where an element of a reshape is in the tensor before it; axes that are only split or merged by group."""
    result: list[Any] = []
    axis = 0
    for group, extents in _groups(source, shape):
        flat: Any = 0
        for _ in group:
            flat = flat * shape[axis] + index[axis] if shape[axis] > 1 else flat
            axis += 1
        for place, extent in enumerate(extents):
            inner = math.prod(extents[place + 1 :])
            outer = tirx.floordiv(flat, inner) if inner > 1 else flat
            result.append(0 if extent == 1 else tirx.floormod(outer, extent) if place else outer)
    return result


def _groups(source: Sequence[int], shape: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Return the fewest consecutive extents of two shapes that have the same product: those of ``shape`` first."""
    groups: list[tuple[list[int], list[int]]] = []
    left, right = list(shape), list(source)
    while left or right:
        ours, theirs = [left.pop(0)] if left else [], [right.pop(0)] if right else []
        while math.prod(ours) != math.prod(theirs):
            if math.prod(ours) < math.prod(theirs):
                ours.append(left.pop(0))
            else:
                theirs.append(right.pop(0))
        groups.append((ours, theirs))
    return groups


def _starts(call: tvm.ir.Call, shape: Sequence[int]) -> list[int] | None:
    """Return where a slice with unit strides begins along each axis; None if that is not known."""
    rows = [numbers(argument) for argument in call.args[1:]]
    if len(rows) < 3 or any(row is None for row in rows) or any(step != 1 for row in rows[3:] for step in row or ()):
        return None
    starts = [0] * len(shape)
    for axis, start in zip(rows[0] or (), rows[1] or (), strict=True):
        extent = shape[axis]
        starts[axis] = min(max(start + extent if start < 0 else start, 0), extent)
    return starts

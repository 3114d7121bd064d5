"""Products with weights that have a scale for each block of the depth: ``x[i, k] * q[k, j] * s[b, j]``.

The scale of a block is taken out of its sum. An element of the weight then costs its decoding and one multiplication
with addition. Over the blocks b, and over k in each of them:

    y[i, j] = sum of s[b, j] * (sum of x[i, k] * q[k, j])

A zero point stays in q: taken out, an infinity in x would be subtracted from itself. Numbers of at most 4 bits with one
zero point for all are decoded in a block of their own, less the zero point, so that a schedule can look them up.

If the rows are integers, too, with a scale r for each row or for each block of it, the inner sums are of integers:

    y[i, j] = sum of s[b, j] * r[i, b] * (sum of x[i, k] * q[k, j] - z[b, j] * sum of x[i, k])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import te, tirx
from tvm.ir import Var

from loopwright.codegen.graph.rewriting import op_name

_Element = Callable[[Sequence[Any], Any, Any], Any]
"""From the tensors that are stored, a place along the depth and a column, to the element of the weight."""
_LEAST = 8
"""Elements of a block below which its scale is not taken out. Not tuned."""
SMALL = 15
"""The largest number of 4 bits."""


@dataclass(frozen=True)
class Blocks:
    """A weight of ``depth`` by columns, in blocks of ``size`` along the depth."""

    element: _Element
    depth: int
    size: int

    @staticmethod
    def of(element: _Element, stored: Sequence[te.Tensor], shape: Sequence[int]) -> Blocks | None:
        """Return the blocks of a weight of a shape ``(depth, columns)``; None if it has none."""
        k, j = tirx.Var("k", "int64"), tirx.Var("j", "int64")
        depth = shape[0]
        for _, scale in _factors(element(stored, k, j)):
            for size in _divisors(scale, k):
                if _LEAST <= size < depth and depth % size == 0 and _in_block(scale, k, 0, size, depth) is not None:
                    return Blocks(element, depth, size)
        return None

    def product(self, rows: te.Tensor, stored: Sequence[te.Tensor], shape: Sequence[int], *, apart: bool) -> te.Tensor:
        """Return the product of rows ``[…, depth]`` with the weight, of a shape ``[…, columns]``.

        ``apart``: whether numbers of 4 bits are decoded in a block of their own.
        """
        count, size = tirx.IntImm("int64", self.depth // self.size), self.size
        *outer, columns = (tirx.IntImm("int64", extent) for extent in shape)
        k = tirx.Var("k", "int64")
        t, b = te.reduce_axis(_extent(size), "t"), te.reduce_axis(_extent(self.depth // size), "b")

        def parts(block: Any, column: Any) -> tuple[Any, Any]:
            """Return an element within a block, at ``t``, and the scale of the block."""
            for inner, scale in _factors(self.element(stored, k, column)):
                factor = _in_block(scale, k, block, size, self.depth)
                if factor is not None:
                    return _at(inner, k, block, t.var, size, self.depth), factor
            raise AssertionError("a weight has the same form wherever it is read")

        zero = self._zero_of_small(stored) if apart and len(outer) == 1 else None
        extents = (count, size, columns)
        numbers = None if zero is None else te.compute(extents, lambda *i: self._number(stored, *i), "matmul_numbers")

        def element(block: Any, column: Any) -> Any:
            if numbers is None:
                return parts(block, column)[0]
            return numbers(block, t, column).astype("float32") - tirx.const(zero, "float32")

        products = te.compute(
            (*outer, count, columns),
            lambda *i: te.sum(rows(*i[:-2], i[-2] * size + t) * element(i[-2], i[-1]), axis=t),
            name="matmul_blocks",
        )
        return te.compute(
            (*outer, columns),
            lambda *i: te.sum(products(*i[:-1], b, i[-1]) * parts(b.var, i[-1])[1], axis=b),
            name="matmul",
        )

    def product_of_integers(
        self,
        rows: te.Tensor,
        row_scales: te.Tensor,
        stored: Sequence[te.Tensor],
        shape: Sequence[int],
        step: float = 1.0,
    ) -> te.Tensor | None:
        """Return the product of rows of int8, of a shape ``[…, depth]``, with the weight.

        ``row_scales`` are of a shape ``[…, blocks]`` or ``[…, 1]``, in units of ``step``. Returns None if the weight is
        of other numbers than integers of 8 bits, less a zero point.
        """
        b, t, u = (
            te.reduce_axis(_extent(extent), name)
            for extent, name in ((self.depth // self.size, "b"), (self.size, "t"), (self.size, "u"))
        )
        # Indices of 64 bits, as those of the weight are.
        count, size, *outer, columns = (
            tirx.IntImm("int64", extent) for extent in (self.depth // self.size, self.size, *shape)
        )
        parts = self._integers(stored, tirx.Var("b", "int64"), tirx.Var("t", "int64"), tirx.Var("j", "int64"))
        if parts is None:
            return None
        has_zeros = parts[1] is not None
        numbers = te.compute((count, size, columns), lambda *i: self._number(stored, *i), name="matmul_numbers")
        products = te.compute(
            (*outer, count, columns),
            lambda *i: te.sum(
                rows(*i[:-2], i[-2] * size + t).astype("int32") * numbers(i[-2], t, i[-1]).astype("int32"), axis=t
            ),
            name="matmul_blocks",
        )
        sums = te.compute(
            (*outer, count),
            lambda *i: te.sum(rows(*i[:-1], i[-1] * size + u).astype("int32"), axis=u),
            name="matmul_rows",
        )

        def element(*i: Any) -> Any:
            _, zero, scale = self._integers(stored, b.var, tirx.IntImm("int64", 0), i[-1])
            found = products(*i[:-1], b, i[-1])
            if has_zeros:
                found = found - zero * sums(*i[:-1], b)
            row_scale = row_scales(*i[:-1], b if int(row_scales.shape[-1]) > 1 else 0)
            row_scale = row_scale if step == 1 else row_scale * tirx.const(step, "float32")
            return te.sum(found.astype("float32") * (row_scale * scale), axis=b)

        return te.compute((*outer, columns), element, name="matmul")

    def _zero_of_small(self, stored: Sequence[te.Tensor]) -> int | None:
        """Return the zero point of all numbers; None if they may be above `SMALL`, or zero points differ."""
        parts = self._integers(stored, tirx.Var("b", "int64"), tirx.Var("t", "int64"), tirx.Var("j", "int64"))
        if parts is None or most(parts[0]) > SMALL:
            return None
        zero = parts[1]
        return 0 if zero is None else int(zero) if isinstance(zero, tirx.IntImm) else None

    def _number(self, stored: Sequence[te.Tensor], block: Any, place: Any, column: Any) -> Any:
        """Return the integer of an element, without its zero point, as uint8."""
        return self._integers(stored, block, place, column)[0]

    def _integers(self, stored: Sequence[te.Tensor], block: Any, place: Any, column: Any) -> Any:
        """Return an element as uint8, its zero point as int32 (None for 0) and the scale of its block.

        Returns None if the weight has another form.
        """
        k = tirx.Var("k", "int64")
        for inner, scale in _factors(self.element(stored, k, column)):
            factor = _in_block(scale, k, block, self.size, self.depth)
            if factor is None:
                continue
            number, zero = (inner.a, inner.b) if isinstance(inner, tirx.Sub) else (inner, None)
            number = _as_integer(number)
            if zero is not None:
                zero = _as_integer(zero)
                zero = None if zero is None else _in_block(zero.astype("int32"), k, block, self.size, self.depth)
                if zero is None:
                    return None
            if number is None or str(number.ty) not in ("int8", "uint8"):
                return None
            number = _at(number, k, block, place, self.size, self.depth)
            if str(number.ty) == "int8":
                number = number.astype("uint8") ^ tirx.const(128, "uint8")
                zero = tirx.const(128, "int32") if zero is None else zero + 128
            return number, zero, factor
        return None


def _as_integer(expr: Any) -> Any:
    """Return the integer of which a number of float32 is made; None if it is none."""
    if isinstance(expr, tirx.FloatImm):
        return tirx.const(int(expr.value), "int32") if float(expr.value).is_integer() else None
    if isinstance(expr, tirx.Cast) and "int" in str(expr.value.ty):
        return expr.value
    if op_name(expr) == "prim.if_then_else":
        condition, *branches = expr.args
        first, second = map(_as_integer, branches)
        if first is not None and second is not None and str(first.ty) == str(second.ty):
            return tirx.if_then_else(condition, first, second)
    return None


def _factors(expr: Any) -> list[tuple[Any, Any]]:
    """Return the two factors of an element in both orders, if it is a product of float32."""
    is_product = isinstance(expr, tirx.Mul) and str(expr.ty.dtype) == "float32"
    return [(expr.a, expr.b), (expr.b, expr.a)] if is_product else []


def _divisors(expr: Any, k: Any) -> list[int]:
    """Return by what a place along the depth is divided in an expression."""
    found: list[Any] = []
    tvm_ffi.structural_walk(expr, (tirx.FloorDiv, found.append), order="pre")
    return sorted({int(each.b) for each in found if each.a.same_as(k) and isinstance(each.b, tirx.IntImm)})


def _at(expr: Any, k: Any, block: Any, place: Any, size: int, depth: int) -> Any:
    """Return an expression at a place of a block, simplified."""
    analyzer = tvm.sym.Analyzer()
    if isinstance(place, Var):
        analyzer.bind(place, _extent(size))
    if isinstance(block, Var):
        analyzer.bind(block, _extent(depth // size))
    moved = tvm_ffi.structural_map(expr, (Var, lambda var: block * size + place if var.same_as(k) else var))
    return analyzer.simplify(moved)


def _extent(extent: int) -> tvm.ir.Range:
    return tvm.ir.Range(tirx.IntImm("int64", 0), tirx.IntImm("int64", extent))


def _in_block(expr: Any, k: Any, block: Any, size: int, depth: int) -> Any:
    """Return what an expression is in a block; None if it differs from element to element."""
    place = tirx.Var("place", "int64")
    found = _at(expr, k, tirx.IntImm("int64", 0) if isinstance(block, int) else block, place, size, depth)
    variables: list[Any] = []
    tvm_ffi.structural_walk(found, (Var, variables.append), order="pre")
    return None if any(each.same_as(place) for each in variables) else found


def most(expr: Any) -> int:
    """Return a number that an expression of uint8 is at most."""
    if isinstance(expr, tirx.IntImm):
        return int(expr)
    if isinstance(expr, tirx.BitwiseAnd):
        return min(most(expr.a), most(expr.b))
    if isinstance(expr, tirx.RShift) and isinstance(expr.b, tirx.IntImm):
        return most(expr.a) >> int(expr.b)
    if op_name(expr) == "prim.if_then_else":
        return max(map(most, expr.args[1:]))
    return 255

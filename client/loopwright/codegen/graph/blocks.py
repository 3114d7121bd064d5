"""Products with weights that have a scale for each block of the depth: ``x[i, k] * q[k, j] * s[b, j]``.

The scale of a block is taken out of its sum. An element of the weight then costs its decoding and one multiplication
with addition. Over the blocks b, and over k in each of them:

    y[i, j] = sum of s[b, j] * (sum of x[i, k] * q[k, j])

A zero point stays in q: taken out, an infinity in x would be subtracted from itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import te, tirx
from tvm.ir import Var

_Element = Callable[[Sequence[Any], Any, Any], Any]
"""From the tensors that are stored, a place along the depth and a column, to the element of the weight."""
_LEAST = 8
"""Elements of a block below which its scale is not taken out. Not tuned."""


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

    def product(self, rows: te.Tensor, stored: Sequence[te.Tensor], shape: Sequence[int]) -> te.Tensor:
        """Return the product of rows ``[…, depth]`` with the weight, of a shape ``[…, columns]``."""
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

        products = te.compute(
            (*outer, count, columns),
            lambda *i: te.sum(rows(*i[:-2], i[-2] * size + t) * parts(i[-2], i[-1])[0], axis=t),
            name="matmul_blocks",
        )
        return te.compute(
            (*outer, columns),
            lambda *i: te.sum(products(*i[:-1], b, i[-1]) * parts(b.var, i[-1])[1], axis=b),
            name="matmul",
        )


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

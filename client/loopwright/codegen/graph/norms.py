"""Root mean square normalisation as one function; TVM fuses no elementwise square with the reduction behind it."""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import te, tirx
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import (
    OUTPUT_FUSABLE,
    CallRewriter,
    reshaped,
    rewrite_calls,
    scalar_of,
    shape_of,
)


def fuse_rms_norm(mod: tvm.IRModule) -> tvm.IRModule:
    """Make one function of ``x * rsqrt(mean(x ** 2) + epsilon)`` over the last axis, however it is written."""
    return rewrite_calls(mod, _RmsNorm)


class RmsNorms(CallRewriter):
    """Finds root mean square normalisations."""

    def normalised(self, expr: Any) -> tuple[Any, float, int] | None:
        """Return the data that an expression normalises, epsilon, and how often it reads it; None for any other."""
        call, shape = self.call_of(expr, "multiply", "divide"), shape_of(expr)
        if call is None or not shape:
            return None
        is_product = str(call.op.name) == "relax.multiply"
        for data, scale in ((call.args[0], call.args[1]), (call.args[1], call.args[0])):
            epsilon = self._epsilon(scale, data, is_inverse=is_product)
            if epsilon is not None and shape_of(data) == shape:
                return data, *epsilon
            if not is_product:
                break
        return None

    def _epsilon(self, scale: Any, data: Any, *, is_inverse: bool) -> tuple[float, int] | None:
        """Return what is added to the mean square of ``data`` under the root that ``scale`` is; None if it is none.

        And how often the scaled data and the square read it.
        """
        quotient = self.call_of(scale, "divide")
        if is_inverse and quotient is not None and scalar_of(self.value(quotient.args[0])) == 1.0:
            root = self.call_of(quotient.args[1], "sqrt")
        else:
            root = self.call_of(scale, "rsqrt" if is_inverse else "sqrt")
        total = None if root is None else self.call_of(root.args[0], "add")
        if total is None:
            return None
        for mean, added in ((total.args[0], total.args[1]), (total.args[1], total.args[0])):
            epsilon = scalar_of(self.value(added))
            reads = self._reads(mean, data)
            if epsilon is not None and reads:
                return epsilon, 1 + reads
        return None

    def _reads(self, mean: Any, data: Any) -> int:
        """Return how often a mean of squares over the last axis reads ``data``; 0 if it is no such mean."""
        call, rank = self.call_of(mean, "mean"), len(shape_of(data) or ())
        if call is None or not rank or not call.attrs.keepdims or call.attrs.axis is None:
            return 0
        if [int(axis) % rank for axis in call.attrs.axis] != [rank - 1]:
            return 0
        square = self.call_of(call.args[0], "power", "multiply", "square")
        if square is None or not square.args[0].same_as(data):
            return 0
        if str(square.op.name) == "relax.power":
            return int(scalar_of(self.value(square.args[1])) == 2.0)
        return 1 if str(square.op.name) == "relax.square" else 2 * int(square.args[1].same_as(data))


@mutator
class _RmsNorm(RmsNorms):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        shape, found = shape_of(call), self.normalised(call)
        if found is None or not shape:
            return call
        data, epsilon, _ = found
        rows = self.emit(reshaped(data, (math.prod(shape[:-1]), shape[-1])))
        normalised = self.builder_.call_te(
            lambda x: rms_norm(x, epsilon),
            rows,
            primfunc_name_hint="rms_norm",
            primfunc_attrs={"op_pattern": OUTPUT_FUSABLE},
        )
        return reshaped(self.emit(normalised), shape)


def rms_norm(x: te.Tensor, epsilon: float) -> te.Tensor:
    """Return ``x * rsqrt(mean(x ** 2) + epsilon)`` over the last axis."""
    *rows, length = x.shape
    k = te.reduce_axis((0, length), "k")
    total = te.compute(rows, lambda *i: te.sum(x(*i, k) * x(*i, k), axis=k), name="rms_square_sum")

    def element(*i: Any) -> Any:
        mean = total(*i[:-1]) / tirx.const(int(length), x.dtype)
        return x(*i) * te.rsqrt(mean + tirx.const(epsilon, x.dtype))

    return te.compute(x.shape, element, name="rms_norm")

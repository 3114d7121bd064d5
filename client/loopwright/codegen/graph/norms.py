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


@mutator
class _RmsNorm(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        shape = shape_of(call)
        if name not in ("multiply", "divide") or shape is None or not shape:
            return call
        for data, scale in ((call.args[0], call.args[1]), (call.args[1], call.args[0])):
            epsilon = self._epsilon(scale, data, is_inverse=name == "multiply")
            if epsilon is not None and shape_of(data) == shape:
                rows = self.emit(reshaped(data, (math.prod(shape[:-1]), shape[-1])))
                normalised = self.builder_.call_te(
                    lambda x, epsilon=epsilon: _compute(x, epsilon),
                    rows,
                    primfunc_name_hint="rms_norm",
                    primfunc_attrs={"op_pattern": OUTPUT_FUSABLE},
                )
                return reshaped(self.emit(normalised), shape)
            if name == "divide":
                break
        return call

    def _epsilon(self, scale: Any, data: Any, *, is_inverse: bool) -> float | None:
        """Return what is added to the mean square of ``data`` under the root that ``scale`` is; None if it is none."""
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
            if epsilon is not None and self._is_mean_square(mean, data):
                return epsilon
        return None

    def _is_mean_square(self, mean: Any, data: Any) -> bool:
        call, rank = self.call_of(mean, "mean"), len(shape_of(data) or ())
        if call is None or not rank or not call.attrs.keepdims or call.attrs.axis is None:
            return False
        if [int(axis) % rank for axis in call.attrs.axis] != [rank - 1]:
            return False
        square = self.call_of(call.args[0], "power", "multiply", "square")
        if square is None or not square.args[0].same_as(data):
            return False
        if str(square.op.name) == "relax.power":
            return scalar_of(self.value(square.args[1])) == 2.0
        return str(square.op.name) == "relax.square" or square.args[1].same_as(data)


def _compute(x: te.Tensor, epsilon: float) -> te.Tensor:
    *rows, length = x.shape
    k = te.reduce_axis((0, length), "k")
    total = te.compute(rows, lambda *i: te.sum(x(*i, k) * x(*i, k), axis=k), name="rms_square_sum")

    def element(*i: Any) -> Any:
        mean = total(*i[:-1]) / tirx.const(int(length), x.dtype)
        return x(*i) * te.rsqrt(mean + tirx.const(epsilon, x.dtype))

    return te.compute(x.shape, element, name="rms_norm")

"""Integers of sums of scaled integers: scales are divided by that of the result once, not each number.

``round((n s + b) / t)`` becomes ``round(n (s / t) + b / t)``. The numbers n are whole; s, b and t are constants.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import CallRewriter, constant, dtype_of, rewrite_calls

_SCALES = (2.0**-60, 2.0**60)
"""Between these, quotients of scales are finite and normal."""


def divide_scales(mod: tvm.IRModule) -> tvm.IRModule:
    """Quantise with a scale of 1 what is made of integers, constant scales, sums and ReLU, with divided scales.

    A quotient is off by two roundings of float32, as it was before.
    """
    return rewrite_calls(mod, _Divided)


@mutator
class _Divided(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        if name != "quantize" or (scale := self._array(call.args[1])) is None or scale.size != 1 or scale.item() == 1:
            return call
        divided = self._divided(call.args[0], scale.item())
        if divided is None:
            return call
        one = relax.const(1, "float32")
        return relax.op.quantize(divided, one, call.args[2], int(call.attrs.axis), str(call.attrs.out_dtype))

    def _divided(self, expr: Any, scale: float) -> Any:
        """Return numbers divided by a scale; None if that takes a division of each."""
        array = self._array(expr)
        if array is not None:
            return constant((array / scale).astype("float32")) if _SCALES[0] < scale < _SCALES[1] else None
        if self.uses()[expr] > 1:
            return None
        if (call := self.call_of(expr, "nn.relu")) is not None:
            operand = self._divided(call.args[0], scale)
            return None if operand is None else self.emit(relax.op.nn.relu(operand))
        if (call := self.call_of(expr, "add")) is not None:
            left, right = (self._divided(operand, scale) for operand in call.args)
            return None if left is None or right is None else self.emit(relax.op.add(left, right))
        if (call := self.call_of(expr, "multiply")) is None or not self._is_whole(call.args[0]):
            return None
        factor = self._array(call.args[1])
        divided = None if factor is None else self._divided(call.args[1], scale)
        return None if divided is None else self.emit(relax.op.multiply(call.args[0], divided))

    def _is_whole(self, expr: Any) -> bool:
        """Return whether numbers are integers, less a zero point or not."""
        if (less := self.call_of(expr, "subtract")) is not None:
            expr = less.args[0]
        call = self.call_of(expr, "astype")
        return call is not None and "int" in dtype_of(call.args[0])

    def _array(self, expr: Any) -> Any:
        value = self.value(expr)
        return value.value.numpy() if isinstance(value, tvm.ir.GenericConst) else None

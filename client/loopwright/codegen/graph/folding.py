"""Normalisations of inference, folded into the convolutions before them while their values are at hand."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import CallRewriter, constant, rewrite_calls, source_name

_STEPS = ("add", "multiply", "divide", "subtract")
"""Of a normalisation, the last one first."""


def fold_normalisation(mod: tvm.IRModule) -> tvm.IRModule:
    """Multiply the scale of a normalisation into the weights of the convolution before it.

    ``(conv(x, w) [+ c] - mean) / deviation * gamma + beta`` becomes ``conv(x, w') + b'``, all of it constant but x.
    """
    return rewrite_calls(mod, _Folded)


@mutator
class _Folded(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        start, values = call, []
        for step in _STEPS:
            start, value = self._taken_off(start, step)
            if value is None:
                return call
            values.append(value)
        start, bias = self._taken_off(start, "add")
        convolved, weight = self._taken_off(start, "nn.conv2d")
        if weight is None:
            return call
        conv, channels = self.value(start), weight.shape[0]
        if str(conv.attrs.kernel_layout) != "OIHW" or str(conv.attrs.out_layout) != "NCHW":
            return call
        if any(value.size != channels for value in (*values, *(() if bias is None else (bias,)))):
            return call
        beta, gamma, deviation, mean = (value.reshape(channels) for value in values)
        factor = gamma / deviation
        shift = beta - mean * factor
        if bias is not None:
            shift = shift + bias.reshape(channels) * factor
        scaled = (weight * factor.reshape(channels, 1, 1, 1)).astype(weight.dtype)
        folded = tvm.ir.Call(conv.op, [convolved, constant(scaled)], conv.attrs, conv.ty_args)
        its_name = source_name(start) if isinstance(start, relax.Var) else ""
        return relax.op.add(
            self.emit(folded, its_name), constant(shift.reshape(1, channels, 1, 1).astype(weight.dtype))
        )

    def _taken_off(self, expr: Any, name: str) -> tuple[Any, Any]:
        """Return the operand and the constant of a call of an operator; if it is none, itself and None."""
        call = self.call_of(expr, name)
        if call is None or not isinstance(call.args[1], tvm.ir.GenericConst):
            return expr, None
        return call.args[0], call.args[1].value.numpy()

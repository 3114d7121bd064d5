"""Functions of one number that are right near 0 and far from it, and in float32 for float16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import relax

from loopwright.codegen.program.broadcasting import elementwise
from loopwright.frontends import elementary
from loopwright.frontends.onnx.accumulation import widened
from loopwright.frontends.onnx.node import Converter, Node, dtype_of


def _precise(element: Callable[[Any], Any]) -> Converter:
    """Return a converter of a function of scalars of TIR, which is computed in float32 or float64."""

    def convert(node: Node) -> Any:
        name = node.operator.lower()
        return node.importer.bb.emit_te(elementwise(element), node.inputs[0], primfunc_name_hint=name)

    return widened(convert)


def _mish(node: Node) -> Any:
    """Convert x tanh(log(1 + e)) with e = exp(x), which is x n / (n + 2) with n = e (e + 2); beyond 20 it is x."""
    (data,) = node.inputs
    limit, two = (relax.const(value, dtype_of(data)) for value in (20, 2))
    power = node.emit(relax.op.exp(relax.op.minimum(data, limit)))
    product = node.emit(relax.op.multiply(power, relax.op.add(power, two)))
    return relax.op.multiply(data, relax.op.divide(product, relax.op.add(product, two)))


def _elu(node: Node) -> Any:
    alpha, gamma = {"Selu": (1.67326319217681884765625, 1.05070102214813232421875)}.get(node.operator, (1.0, 1.0))
    alpha, gamma = node.attributes.get("alpha", alpha), node.attributes.get("gamma", gamma)
    input_scale = 1 / alpha if node.operator == "Celu" else 1.0
    return elementary.elu(node.emit, node.inputs[0], alpha=alpha, scale=gamma, input_scale=input_scale)


def _leaky(node: Node) -> Any:
    """Convert PRelu, whose slopes TVM takes for one axis only."""
    data, slope = node.inputs
    below = node.emit(relax.op.multiply(data, slope))
    return relax.op.where(node.emit(relax.op.less(data, relax.const(0, dtype_of(data)))), below, data)


CONVERTERS: dict[str, Converter] = {
    "Atanh": _precise(elementary.atanh),
    "Celu": widened(_elu),
    "Elu": widened(_elu),
    "Mish": widened(_mish),
    "PRelu": _leaky,
    "Selu": widened(_elu),
    "Sinh": _precise(elementary.sinh),
    "Softplus": _precise(elementary.softplus),
    **dict.fromkeys(("Acos", "Acosh", "Asin", "Asinh", "Atan", "Cosh", "Gelu", "Tan", "Tanh"), widened(Node.as_usual)),
}

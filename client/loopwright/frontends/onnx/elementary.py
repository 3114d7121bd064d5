"""Functions of one number that are exact near 0 and far from it: with exp(x) - 1 and log(1 + x) without cancellation.

The method is W. Kahan's: the rounding error of exp, or of 1 + x, is in both factors and cancels.
"""

from __future__ import annotations

from typing import Any

from tvm import relax

from loopwright.frontends.onnx.accumulation import widened
from loopwright.frontends.onnx.node import Converter, Node, dtype_of


def _one(value: Any) -> Any:
    return relax.const(1, dtype_of(value))


def expm1(node: Node, data: Any) -> Any:
    """Return exp(data) - 1."""
    one, power = _one(data), node.emit(relax.op.exp(data))
    less = node.emit(relax.op.subtract(power, one))
    near = node.emit(relax.op.multiply(less, relax.op.divide(data, relax.op.log(power))))
    is_far = node.emit(relax.op.greater(relax.op.abs(data), one))
    near = node.emit(relax.op.where(node.emit(relax.op.equal(power, one)), data, near))
    return node.emit(relax.op.where(is_far, less, near))


def log1p(node: Node, data: Any) -> Any:
    """Return log(1 + data), for numbers from -1 to 1."""
    one = _one(data)
    whole = node.emit(relax.op.add(one, data))
    share = node.emit(relax.op.divide(data, relax.op.subtract(whole, one)))
    return node.emit(
        relax.op.where(
            node.emit(relax.op.equal(whole, one)), data, node.emit(relax.op.multiply(relax.op.log(whole), share))
        )
    )


def _softplus(node: Node) -> Any:
    (data,) = node.inputs
    zero = relax.const(0, dtype_of(data))
    positive = node.emit(relax.op.where(node.emit(relax.op.greater(data, zero)), data, zero))
    decay = node.emit(relax.op.exp(relax.op.negative(relax.op.abs(data))))
    return relax.op.add(positive, log1p(node, decay))


def _mish(node: Node) -> Any:
    """Convert x tanh(log(1 + e)) with e = exp(x), which is x n / (n + 2) with n = e (e + 2); beyond 20 it is x."""
    (data,) = node.inputs
    limit, two = (relax.const(value, dtype_of(data)) for value in (20, 2))
    power = node.emit(relax.op.exp(relax.op.minimum(data, limit)))
    product = node.emit(relax.op.multiply(power, relax.op.add(power, two)))
    return relax.op.multiply(data, relax.op.divide(product, relax.op.add(product, two)))


def _elu(node: Node) -> Any:
    """Convert Elu, Selu and Celu: linear above 0, exponential below."""
    (data,) = node.inputs
    dtype = dtype_of(data)
    alpha, gamma = {"Selu": (1.67326319217681884765625, 1.05070102214813232421875)}.get(node.operator, (1.0, 1.0))
    alpha, gamma = node.attributes.get("alpha", alpha), node.attributes.get("gamma", gamma)
    scaled = node.emit(relax.op.divide(data, relax.const(alpha, dtype))) if node.operator == "Celu" else data
    below = node.emit(relax.op.multiply(expm1(node, scaled), relax.const(alpha * gamma, dtype)))
    above = node.emit(relax.op.multiply(data, relax.const(gamma, dtype))) if gamma != 1 else data
    return relax.op.where(node.emit(relax.op.less(data, relax.const(0, dtype))), below, above)


def _atanh(node: Node) -> Any:
    """Convert an inverse hyperbolic tangent, by log1p(2|x| / (1 - |x|)) / 2 where that is exact."""
    (data,) = node.inputs
    dtype = dtype_of(data)
    size = node.emit(relax.op.abs(data))
    ratio = node.emit(relax.op.divide(relax.op.add(size, size), relax.op.subtract(_one(data), size)))
    half = node.emit(relax.op.multiply(log1p(node, ratio), relax.const(0.5, dtype)))
    near = node.emit(relax.op.where(relax.op.less(data, relax.const(0, dtype)), relax.op.negative(half), half))
    is_near = node.emit(relax.op.less(size, relax.const(0.3, dtype)))
    return relax.op.where(is_near, near, node.emit(node.as_usual()))


CONVERTERS: dict[str, Converter] = {
    "Atanh": widened(_atanh),
    "Celu": widened(_elu),
    "Elu": widened(_elu),
    "Mish": widened(_mish),
    "Selu": widened(_elu),
    "Softplus": widened(_softplus),
    **dict.fromkeys(
        ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Cosh", "Gelu", "Sinh", "Tan", "Tanh"), widened(Node.as_usual)
    ),
}

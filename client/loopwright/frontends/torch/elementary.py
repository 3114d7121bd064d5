"""Elementary functions of PyTorch in Relax. Those of integers are computed in the dtype of the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tvm import relax

from loopwright.frontends import elementary
from loopwright.frontends.torch.elements import elementwise
from loopwright.frontends.torch.node import Converter, Node, wide


def _unary(operator: Any) -> Converter:
    return lambda node: operator(node.cast(node["self"], node.dtype))


def _wide_unary(operator: Any) -> Converter:
    """Return a converter of a function that LLVM has in float32 and float64 only."""
    return lambda node: node.cast(node.emit(operator(node.cast(node["self"], wide(node.dtype)))), node.dtype)


def _precise(element: Callable[[Any], Any]) -> Converter:
    """Return a converter of a function of scalars of TIR, which is computed in float32 or float64."""

    def convert(node: Node) -> Any:
        return node.cast(elementwise(node, element, node.cast(node["self"], wide(node.dtype))), node.dtype)

    return convert


def _expm1(node: Node) -> Any:
    return node.cast(elementary.expm1(node.emit, node.cast(node["self"], wide(node.dtype))), node.dtype)


def _elu(node: Node) -> Any:
    factors = {name: float(node[name]) for name in ("alpha", "scale", "input_scale")}
    return node.cast(elementary.elu(node.emit, node.cast(node["self"], wide(node.dtype)), **factors), node.dtype)


def _isfinite(node: Node) -> Any:
    """Convert a test that TVM's own operator passes for NaN."""
    data = node["self"]
    if "float" not in str(data.ty.dtype):
        return relax.op.ones(list(data.ty.shape), "bool")
    return elementwise(node, elementary.isfinite, data)


def _test(operator: Any) -> Converter:
    """Return a converter of a test that no integer passes, and that TVM has for floating-point numbers."""

    def convert(node: Node) -> Any:
        data = node["self"]
        return operator(data) if "float" in str(data.ty.dtype) else relax.op.zeros(list(data.ty.shape), "bool")

    return convert


def _sign(node: Node) -> Any:
    if "uint" in node.dtype:  # of which TVM makes -1 as well
        return relax.op.minimum(node["self"], relax.const(1, node.dtype))
    return node["self"] if node.dtype == "bool" else node.usual()


def _negative(node: Node) -> Any:
    """Convert a negation. TVM multiplies by -1, which unsigned integers do not have."""
    if "uint" not in node.dtype:
        return node.usual()
    return relax.op.subtract(relax.const(0, node.dtype), node["self"])


def _logarithm(base: int) -> Converter:
    def convert(node: Node) -> Any:
        inner = wide(node.dtype)
        logarithm = node.emit(relax.op.log(node.cast(node["self"], inner)))
        return node.cast(node.emit(relax.op.divide(logarithm, node.cast(math.log(base), inner))), node.dtype)

    return convert


def _atan2(node: Node) -> Any:
    operands = (node.cast(node[name], wide(node.dtype)) for name in ("self", "other"))
    return node.cast(node.emit(relax.op.atan2(*operands)), node.dtype)


_UNARY = "ceil cos erf exp floor log rsqrt sigmoid sin sqrt square tanh trunc"
_WIDE_UNARY = "acos acosh asin asinh atan cosh tan"

CONVERTERS: dict[str, Converter] = {
    **{f"{name}.default": _unary(getattr(relax.op, name)) for name in _UNARY.split()},
    **{f"{name}.default": _wide_unary(getattr(relax.op, name)) for name in _WIDE_UNARY.split()},
    "atan2.default": _atan2,
    "atanh.default": _precise(elementary.atanh),
    "elu.default": _elu,
    "exp2.default": lambda node: relax.op.power(node.cast(2, node.dtype), node.cast(node["self"], node.dtype)),
    "expm1.default": _expm1,
    "isfinite.default": _isfinite,
    "isinf.default": _test(relax.op.isinf),
    "isnan.default": _test(relax.op.isnan),
    "log10.default": _logarithm(10),
    "log1p.default": _precise(elementary.log1p),
    "log2.default": _logarithm(2),
    "neg.default": _negative,
    "sign.default": _sign,
    "sinh.default": _precise(elementary.sinh),
}

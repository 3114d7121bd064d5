"""Elementary functions of PyTorch in Relax. Those of integers are computed in the dtype of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import relax

from loopwright.frontends import elementary
from loopwright.frontends.torch.elements import elementwise
from loopwright.frontends.torch.node import Converter, Node, wide


def _unary(operator: Any) -> Converter:
    return lambda node: operator(node.cast(node["self"], node.dtype))


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


def _atan2(node: Node) -> Any:
    return relax.op.atan2(*(node.cast(node[name], node.dtype) for name in ("self", "other")))


_UNARY = "acos acosh asin asinh atan ceil cos cosh erf exp floor log rsqrt sigmoid sin sqrt square tan tanh trunc"

CONVERTERS: dict[str, Converter] = {
    **{f"{name}.default": _unary(getattr(relax.op, name)) for name in _UNARY.split()},
    "atan2.default": _atan2,
    "atanh.default": _precise(elementary.atanh),
    "elu.default": _elu,
    "exp2.default": lambda node: relax.op.power(node.cast(2, node.dtype), node.cast(node["self"], node.dtype)),
    "expm1.default": _expm1,
    "log1p.default": _precise(elementary.log1p),
    "sinh.default": _precise(elementary.sinh),
}

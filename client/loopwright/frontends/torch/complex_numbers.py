"""Complex numbers of PyTorch within a model, as two tensors of real numbers; inputs and outputs of models are real.

Arithmetic is decomposed into that of the two parts. What selects or moves elements, or is linear, is translated twice.
A Fourier transform is a product with a constant matrix for each axis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import tvm
from torch.utils._pytree import tree_leaves
from tvm import relax

from loopwright.frontends.torch.node import Converter, Node, is_known, is_tensor

_aten = torch.ops.aten

_MOST_POINTS = 4096
"""Of a Fourier transform: its two matrices have 128 MiB then."""


@dataclass(frozen=True, slots=True)
class Complex:
    """Two tensors, or two equal structures of tensors if an operator has several results."""

    real: Any
    imaginary: Any


_PARTWISE = frozenset(
    {
        "_assert_tensor_metadata.default", "_unsafe_view.default", "alias.default", "cat.default", "clone.default",
        "constant_pad_nd.default", "copy.default", "cumsum.default",
        "expand.default", "flip.default", "gather.default", "getitem", "index.Tensor",
        "index_put.default", "index_select.default", "lift_fresh_copy.default", "mean.dim", "neg.default",
        "permute.default", "repeat.default", "roll.default", "select.int", "select_scatter.default", "slice.Tensor",
        "slice_scatter.default", "split_with_sizes.default", "squeeze.dims", "sum.dim_IntList", "unsqueeze.default",
        "view.default", "where.self",
    }
)  # fmt: skip
"""Operators that do the same with both parts."""
_REAL = {
    "gather.default": 2,
    "index.Tensor": 1,
    "index_put.default": 1,
    "index_select.default": 2,
    "where.self": 0,
}
"""The places of arguments of such operators that are real."""
_VALUE = 2
"""The place of the value of a padding, which has no imaginary part."""


def is_complex(fx_node: Any) -> bool:
    """Return whether the value of a node of a graph has complex numbers."""
    values = tree_leaves(fx_node.meta.get("val"))
    return any(isinstance(value, torch.Tensor) and value.is_complex() for value in values)


def check_ends(program: Any) -> None:
    """Raise a `ValueError` if an exported program takes or returns complex numbers."""
    [result] = program.graph.find_nodes(op="output")
    placeholders, taken = program.graph.find_nodes(op="placeholder"), program.graph_signature.user_inputs
    inputs = [node for node in placeholders if node.name in taken]
    for verb, nodes in (("takes", inputs), ("returns", result.all_input_nodes)):
        if any(map(is_complex, nodes)):
            raise ValueError(f"the model {verb} complex numbers, of which it should have torch.view_as_real there")


def check_partwise(fx_node: Any) -> None:
    """Raise a `ValueError` unless an operator does the same with the two parts of its operands."""
    name, real = fx_node.target.__name__, set[Any]()
    if name in _REAL:
        torch.fx.node.map_arg(fx_node.args[_REAL[name]], real.add)
    operands = [each for each in fx_node.all_input_nodes if each not in real]
    is_padded = name == "constant_pad_nd.default" and any(fx_node.args[_VALUE:])
    if name not in _PARTWISE or is_padded or not all(map(is_complex, operands)):
        raise ValueError("has no translation for complex numbers; compute with torch.view_as_real of them")


def take_parts(graph: Any) -> None:
    """Let what selects one part of all numbers, which are interleaved before, take the part itself."""
    for node in graph.find_nodes(op="call_function", target=_aten.select.int):
        source, axis, place = node.args
        if source.target is _aten.view_as_real.default and axis in (-1, source.meta["val"].dim() - 1):
            node.target, node.args = (_aten.imag if place else _aten.real).default, source.args


def imaginary_parts(program: Any) -> dict[str, torch.Tensor]:
    """Return the imaginary parts of a program's weights and constants, by the names of the nodes that have them."""
    signature = program.graph_signature
    kinds = (signature.inputs_to_parameters, signature.inputs_to_buffers, signature.inputs_to_lifted_tensor_constants)
    values = {**program.constants, **program.state_dict}
    found = {node: values.get(name) for names in kinds for node, name in names.items()}
    return {
        node: value.detach().imag.resolve_neg().contiguous()
        for node, value in found.items()
        if isinstance(value, torch.Tensor) and value.is_complex()
    }


def _parts(node: Node, value: Any) -> Complex:
    """Return an operand as complex numbers."""
    if isinstance(value, Complex):
        return value
    if not is_tensor(value):
        value = complex(value)
        return Complex(node.cast(value.real, node.dtype), node.cast(value.imag, node.dtype))
    real = node.cast(value, node.dtype)
    return Complex(real, node.emit(relax.op.zeros(list(real.ty.shape), node.dtype)))


def _copied(node: Node) -> Any:
    whole = _parts(node, node["self"])
    real, imaginary = (node.cast(part, node.dtype) for part in (whole.real, whole.imaginary))
    return Complex(real, imaginary) if node.result.dtype.is_complex else real


def _full(node: Node) -> Complex:
    value = _parts(node, node["fill_value"])
    shape = relax.ShapeExpr(list(node["size"]))
    return Complex(*(node.emit(relax.op.full(shape, part, node.dtype)) for part in (value.real, value.imaginary)))


def _conjugate(node: Node) -> Complex:
    return Complex(node["self"].real, node.emit(relax.op.negative(node["self"].imaginary)))


def _interleaved(node: Node) -> Any:
    parts = [node["self"].real, node["self"].imaginary]
    return relax.op.stack(parts, len(parts[0].ty.shape))


def _apart(node: Node) -> Complex:
    real, imaginary = (
        node.emit(relax.op.take(node["self"], relax.const(place, "int64"), len(node.result.shape), mode="clip"))
        for place in (0, 1)
    )
    return Complex(real, imaginary)


def _fourier(node: Node) -> Complex:
    sign = -1 if node["forward"] else 1
    return _transformed(node, _parts(node, node["self"]), [int(axis) for axis in node["dim"]], sign)


def _fourier_of_real(node: Node) -> Complex:
    """Convert a transform of real numbers, whose last axis may end behind half of the frequencies."""
    *others, last = [int(axis) for axis in node["dim"]]
    size = _points(node["self"], last)
    waves = _waves(node, size, -1)
    waves = waves[:, : size // 2 + 1] if node["onesided"] else waves
    return _transformed(node, _along(node, _parts(node, node["self"]), last, waves), others, -1)


def _fourier_to_real(node: Node) -> Any:
    """Convert a transform of the lower half of frequencies; the upper half is the conjugate of the lower."""
    *others, last = [int(axis) for axis in node["dim"]]
    value, size = _transformed(node, node["self"], others, 1), int(node["last_dim_size"])
    rows = np.arange(size // 2 + 1)
    twice = np.where((rows == 0) | (2 * rows == size), 1, 2)[:, np.newaxis]
    return _along(node, value, last, _waves(node, size, 1)[rows] * twice).real


def _transformed(node: Node, value: Complex, axes: list[int], sign: int) -> Complex:
    for axis in axes:
        value = _along(node, value, axis, _waves(node, _points(value.real, axis), sign))
    return value


def _points(data: Any, axis: int) -> int:
    extent = data.ty.shape[axis]
    if not is_known(extent):
        raise ValueError("has no translation along a symbolic extent")
    return int(extent)


def _waves(node: Node, size: int, sign: int) -> Any:
    """Return the square matrix of a transform, scaled: ``normalization`` 1 divides by the root of the size, 2 by it."""
    if size > _MOST_POINTS:
        raise ValueError(f"has no translation for {size} points, but for {_MOST_POINTS} at most; give shorter frames")
    places = np.outer(np.arange(size), np.arange(size)) % size
    waves = np.exp(sign * 2j * np.pi * places / size)
    waves = np.where(4 * places % size == 0, np.round(waves), waves)  # quarters of a turn, where a part is 0
    return waves / size ** (node["normalization"] / 2)


def _along(node: Node, value: Complex, axis: int, matrix: Any) -> Complex:
    """Return the products of all rows along an axis with a matrix of complex numbers."""
    rank, dtype = len(value.real.ty.shape), node.dtype
    order = [*(place for place in range(rank) if place != axis), axis]
    cosines, sines = (relax.const(np.ascontiguousarray(part, dtype), dtype) for part in (matrix.real, matrix.imag))

    def moved(part: Any, axes: list[int]) -> Any:
        return part if axes == sorted(axes) else node.emit(relax.op.permute_dims(part, axes))

    def products(part: Any) -> list[Any]:
        rows = moved(part, order)
        return [node.emit(relax.op.matmul(rows, each, out_dtype=dtype)) for each in (cosines, sines)]

    real, imaginary = products(value.real)
    if not _is_zero(node, value.imaginary):
        of_cosines, of_sines = products(value.imaginary)
        real = node.emit(relax.op.subtract(real, of_sines))
        imaginary = node.emit(relax.op.add(imaginary, of_cosines))
    back = [order.index(place) for place in range(rank)]
    return Complex(moved(real, back), moved(imaginary, back))


def _is_zero(node: Node, part: Any) -> bool:
    bound = node.builder.lookup_binding(part) if isinstance(part, relax.Var) else None
    return isinstance(bound, tvm.ir.Call) and bound.op == tvm.ir.Op.get("relax.zeros")


CONVERTERS: dict[str, Converter] = {
    "_conj.default": _conjugate,
    "_conj_physical.default": _conjugate,
    "_fft_c2c.default": _fourier,
    "_fft_c2r.default": _fourier_to_real,
    "_fft_r2c.default": _fourier_of_real,
    "_to_copy.default": _copied,
    "complex.default": lambda node: Complex(node["real"], node["imag"]),
    "full.default": _full,
    "imag.default": lambda node: node["self"].imaginary,
    "real.default": lambda node: node["self"].real,
    "view_as_complex.default": _apart,
    "view_as_real.default": _interleaved,
}


def _halves(value: Any) -> tuple[Any, Any]:
    """Return the parts of a number or a tensor; the imaginary part is None if it is real."""
    if isinstance(value, complex) or (isinstance(value, torch.Tensor) and value.is_complex()):
        return value.real, value.imag
    return value, None


def _of_halves(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the decomposition of an operator of complex numbers, given as a function of their parts."""

    def decomposed(*args: Any, **kwargs: Any) -> Any:
        halves = [_halves(value) for value in args]
        return NotImplemented if all(half[1] is None for half in halves) else function(*halves, **kwargs)

    return decomposed


def _product(operator: Any) -> Callable[..., Any]:
    def product(left: tuple[Any, Any], right: tuple[Any, Any]) -> Any:
        (a, b), (c, d) = left, right
        real = operator(a, c)
        if b is None or d is None:
            return torch.complex(real, operator(a, d) if b is None else operator(b, c))
        return torch.complex(real - operator(b, d), operator(a, d) + operator(b, c))

    return _of_halves(product)


def _sum(operator: Any) -> Callable[..., Any]:
    def added(left: tuple[Any, Any], right: tuple[Any, Any], **options: Any) -> Any:
        (a, b), (c, d) = left, right
        b, d = (_zero(a) if b is None else b), (_zero(c) if d is None else d)
        return torch.complex(operator(a, c, **options), operator(b, d, **options))

    return _of_halves(added)


def _zero(value: Any) -> Any:
    return torch.zeros_like(value) if isinstance(value, torch.Tensor) else 0


def _quotient(left: tuple[Any, Any], right: tuple[Any, Any]) -> Any:
    """Return a quotient, whose divisor is scaled before it is squared."""
    (a, b), (c, d) = left, right
    if d is None:
        return torch.complex(a / c, b / c)
    b = _zero(a) if b is None else b
    largest = torch.maximum(c.abs(), d.abs()) if isinstance(c, torch.Tensor) else max(abs(c), abs(d))
    p, q = c / largest, d / largest
    square = c * p + d * q
    return torch.complex((a * p + b * q) / square, (b * p - a * q) / square)


def _polar(size: Any, angle: Any) -> Any:
    return torch.complex(size * torch.cos(angle), size * torch.sin(angle))


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    _aten._neg_view.default: torch.neg,
    _aten.abs.default: _of_halves(lambda whole: torch.hypot(*whole)),
    _aten.add.Tensor: _sum(torch.add),
    _aten.bmm.default: _product(torch.bmm),
    _aten.div.Tensor: _of_halves(_quotient),
    _aten.exp.default: _of_halves(lambda whole: _polar(torch.exp(whole[0]), whole[1])),
    _aten.mm.default: _product(torch.mm),
    _aten.mul.Tensor: _product(torch.mul),
    _aten.polar.default: _polar,
    _aten.reciprocal.default: _of_halves(lambda whole: _quotient((1, 0), whole)),
    _aten.sub.Tensor: _sum(torch.sub),
}
"""They take the place of PyTorch's own for complex numbers alone."""

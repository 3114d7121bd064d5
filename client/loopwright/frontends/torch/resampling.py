"""Images of PyTorch in other sizes, and at the places of a grid, in Relax.

TVM's `resize2d` is taken where it computes the same. Everything else is a sum of a few elements of each axis, whose
weights are those that PyTorch's own operator has: it is called with the identity matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tvm import relax, te, tirx

from loopwright.frontends.torch.node import Converter, Node, extents, wide

_Resize = Callable[[Any, list[int], Any], Any]
"""PyTorch's operator: from an image, a size and the scales of both axes, if they were given, to an image."""

_aten = torch.ops.aten


def _nearest(node: Node) -> Any:
    own, size, scales = _sizes(node)
    factors = [divmod(wanted, extent) for extent, wanted in zip(own, size, strict=True)]
    if all(rest == 0 and factor.bit_count() == 1 for factor, rest in factors):
        return _usual(node, size, "nearest_neighbor", "asymmetric", "floor")

    def resize(image: Any, sizes: list[int], scales: Any) -> Any:
        return _aten.upsample_nearest2d(image, sizes, *scales)

    return _resampled(node, resize, own, size, scales)


def _bilinear(node: Node) -> Any:
    own, size, scales = _sizes(node)
    corners = bool(node["align_corners"])
    as_sized = (
        scale is None or extent * scale == wanted for extent, wanted, scale in zip(own, size, scales, strict=True)
    )
    if all(as_sized) and not (corners and 1 in size):
        return _usual(node, size, "linear", "align_corners" if corners else "half_pixel", "")

    def resize(image: Any, sizes: list[int], scales: Any) -> Any:
        return _aten.upsample_bilinear2d(image, sizes, corners, *scales)

    return _resampled(node, resize, own, size, scales)


def _with_antialias(operator: Any) -> Converter:
    def convert(node: Node) -> Any:
        corners = bool(node["align_corners"])
        return _resampled(node, lambda image, sizes, scale: operator(image, sizes, corners, *scale), *_sizes(node))

    return convert


def _sizes(node: Node) -> tuple[list[int], list[int], list[float | None]]:
    """Return the extents of an image, those of the result, and the scales that were given."""
    data = node.arguments.get("input", node.arguments.get("self"))
    if "float" not in str(data.ty.dtype):
        raise ValueError("resamples integers; convert them to floating-point numbers before")
    factors = node.arguments.get("scale_factors") or [node.arguments.get(name) for name in ("scales_h", "scales_w")]
    return extents(data)[2:], [int(extent) for extent in node.result.shape[2:]], list(factors)


def _usual(node: Node, size: list[int], method: str, transformation: str, rounding: str) -> Any:
    return relax.op.image.resize2d(
        node["input"],
        tuple(size),
        layout="NCHW",
        method=method,
        coordinate_transformation_mode=transformation,
        rounding_method=rounding,
    )


def _resampled(node: Node, resize: _Resize, own: list[int], size: list[int], scales: list[float | None]) -> Any:
    data = node.arguments.get("input", node.arguments.get("self"))
    result = node.cast(data, wide(node.dtype))
    for axis, (extent, wanted, scale) in enumerate(zip(own, size, scales, strict=True)):
        identity = torch.eye(extent, dtype=torch.float64)[None, None]
        matrix = resize(identity, [wanted, extent], (scale, None))[0, 0].numpy()
        result = _weighted(node, result, 2 + axis, *_taps(matrix))
    return node.cast(result, node.dtype)


def _taps(weights: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the places and the weights of the elements that each row of a matrix takes; further weights are 0."""
    count = max(int((weights != 0).sum(1).max()), 1)
    places = np.argsort(weights == 0, axis=1, kind="stable")[:, :count]
    return places, np.take_along_axis(weights, places, 1)


def _weighted(node: Node, data: Any, axis: int, places: Any, weights: Any) -> Any:
    """Return sums of elements of an axis. An element without weight is not read: it may be infinite."""
    dtype = str(data.ty.dtype)

    def resample(data: te.Tensor, places: te.Tensor, weights: te.Tensor) -> te.Tensor:
        each = te.reduce_axis((0, places.shape[1]), "k")
        zero = tirx.const(0, dtype)

        def element(*place: Any) -> Any:
            weight = weights[place[axis], each]
            where = [*place[:axis], places[place[axis], each], *place[axis + 1 :]]
            return te.sum(tirx.Select(weight == zero, zero, weight * data(*where)), axis=each)

        shape = [*data.shape[:axis], places.shape[0], *data.shape[axis + 1 :]]
        return te.compute(shape, element, name="resample")

    return node.compute(
        resample, data, relax.const(places.astype("int64"), "int64"), relax.const(weights.astype(dtype), dtype)
    )


def _grid_sample(node: Node) -> Any:
    """TVM has the coordinates of the grid on the second axis, PyTorch on the last."""
    data, grid = (node.cast(node[name], wide(node.dtype)) for name in ("input", "grid"))
    result = relax.op.image.grid_sample(
        data,
        node.emit(relax.op.permute_dims(grid, [0, 3, 1, 2])),
        method=("bilinear", "nearest", "bicubic")[node["interpolation_mode"]],
        layout="NCHW",
        padding_mode=("zeros", "border", "reflection")[node["padding_mode"]],
        align_corners=bool(node["align_corners"]),
    )
    return node.cast(node.emit(result), node.dtype)


def _average_pool(pool: Callable[..., Any], dims: int) -> Converter:
    """Return the converter for so many spatial dimensions: TVM's ignores a divisor."""

    def convert(node: Node) -> Any:
        divisor = node["divisor_override"]
        if divisor is None:
            return node.usual()
        if node["ceil_mode"] or len(node["self"].ty.shape) != dims + 2:
            raise ValueError("has no translation for divisor_override with ceil_mode, or for an image without a batch")
        size = [int(each) for each in node["kernel_size"]] * (1 if len(node["kernel_size"]) == dims else dims)
        strides = [int(each) for each in node["stride"]] or size
        is_float = "float" in node.dtype
        inner = wide(node.dtype) if is_float else "float64"
        padding = [int(each) for each in node["padding"]]
        mean = pool(node.cast(node["self"], inner), size, strides, padding, count_include_pad=True)
        if is_float:
            factor = node.cast(math.prod(size) / divisor, inner)
            return node.cast(node.emit(relax.op.multiply(node.emit(mean), factor)), node.dtype)
        # Sums of integers are exact again once they are rounded, and PyTorch divides integers towards zero.
        total = node.emit(relax.op.multiply(node.emit(mean), node.cast(float(math.prod(size)), inner)))
        quotient = relax.op.divide(node.emit(relax.op.round(total)), node.cast(float(divisor), inner))
        return node.cast(node.emit(relax.op.trunc(node.emit(quotient))), node.dtype)

    return convert


CONVERTERS: dict[str, Converter] = {
    "_upsample_bicubic2d_aa.default": _with_antialias(_aten._upsample_bicubic2d_aa),
    "_upsample_bilinear2d_aa.default": _with_antialias(_aten._upsample_bilinear2d_aa),
    "avg_pool2d.default": _average_pool(relax.op.nn.avg_pool2d, 2),
    "avg_pool3d.default": _average_pool(relax.op.nn.avg_pool3d, 3),
    "grid_sampler_2d.default": _grid_sample,
    "upsample_bilinear2d.vec": _bilinear,
    "upsample_nearest2d.vec": _nearest,
}

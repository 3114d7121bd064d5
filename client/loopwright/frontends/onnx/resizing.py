"""Resizing, axis by axis, by sums of elements whose places and weights are computed at import.

TVM's operator takes batches of images only, the quotient of two extents for the scale, and no filter against aliasing.
Nothing is refused but where the standard leaves the result open, or ONNX Runtime does otherwise.
"""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tvm import relax, te

from loopwright.frontends.onnx.accumulation import wide
from loopwright.frontends.onnx.node import Converter, Node, dtype_of

Array = np.ndarray[Any, Any]
_WITH_ENDS = ("align_corners", "tf_crop_and_resize")
"""Transformations that ask for the last element of the result, and so for a whole number of elements."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis: its extents before and after, the scale, and the part of it that is read, of 0 to 1."""

    place: int
    extent: int
    resized: int
    scale: float
    start: float
    end: float

    @property
    def is_kept(self) -> bool:
        return (self.extent, self.scale, self.start, self.end) == (self.resized, 1, 0, 1)

    def coordinates(self, mode: str, kind: type[np.floating[Any]] = np.float64) -> Array:
        """Return the place in the tensor of each element of the result."""
        x, scale, last = np.arange(self.resized, dtype=kind), kind(self.scale), self.extent - 1
        half_pixel = (x + kind(0.5)) / scale - kind(0.5)
        match mode:
            case "asymmetric":
                return x / scale
            case "half_pixel":
                return half_pixel
            case "half_pixel_symmetric":
                offset = kind(self.extent / 2) * (1 - self.resized / (self.extent * scale))
                return offset + (x + kind(0.5)) / scale - kind(0.5)
            case "pytorch_half_pixel":
                return half_pixel if self.resized > 1 else x
            case "align_corners":
                return x * kind(last) / kind(self.resized - 1) if self.resized > 1 else x
            case "tf_crop_and_resize":
                if self.resized == 1:
                    return x + kind((self.start + self.end) / 2 * last)
                return kind(self.start * last) + x * kind((self.end - self.start) * last / (self.resized - 1))
        raise ValueError(f"with coordinate_transformation_mode {mode}")


def _resize(node: Node) -> Any:
    data, mode = node.inputs[0], node.text("mode", "nearest")
    transformation = node.text("coordinate_transformation_mode", "half_pixel")
    axes = [each for each in _axes(node) if not each.is_kept]
    if transformation in _WITH_ENDS and any(each.resized != each.extent * each.scale for each in axes):
        raise ValueError(f"to fractions of elements with {transformation}; give sizes in place of scales")
    if mode != "nearest" and "float" not in dtype_of(data):
        raise ValueError(f"of {dtype_of(data)} with mode {mode}, whose rounding is open; cast the tensor to float32")
    outside = np.zeros([1] * len(data.ty.shape), "bool")
    whole = data if mode == "nearest" else node.emit(relax.op.astype(data, wide(data)))
    for axis in axes:
        places = axis.coordinates(transformation)
        if transformation == "tf_crop_and_resize":
            outside = outside | _along(axis, (places < 0) | (places > axis.extent - 1), outside.ndim)
        if mode == "nearest":
            whole = _selected(node, whole, axis, _nearest(node, axis, transformation))
        else:
            whole = _weighted(node, whole, axis, *_taps(node, axis, places))
    if dtype_of(whole) != dtype_of(data):
        whole = node.emit(relax.op.astype(whole, dtype_of(data)))
    if outside.any():
        value = relax.const(node.attributes.get("extrapolation_value", 0.0), dtype_of(data))
        whole = node.emit(relax.op.where(relax.const(outside, "bool"), value, whole))
    return whole


def _axes(node: Node) -> list[_Axis]:
    """Return the axes that the node names, all unless it names some, with what becomes of them."""
    shape, scales, sizes = node.extents(0), node.constant(2), node.constant(3)
    named = [int(axis) % len(shape) for axis in node.attributes.get("axes", range(len(shape)))]
    extents = [shape[axis] for axis in named]
    if scales is not None and scales.size:
        factors = [float(scale) for scale in scales]
        resized = [math.floor(extent * factor) for extent, factor in zip(extents, factors, strict=True)]
    else:
        resized = [int(size) for size in sizes]
        factors = [size / extent for size, extent in zip(resized, extents, strict=True)]
        policy = node.text("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            factors = [min(factors) if policy == "not_larger" else max(factors)] * len(factors)
            resized = [math.floor(extent * factor + 0.5) for extent, factor in zip(extents, factors, strict=True)]
    if not all(resized):
        raise ValueError("to a tensor without elements")
    region = np.array([[0.0] * len(named), [1.0] * len(named)])
    if node.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize":
        region = node.constant(1).astype("float64").reshape(2, -1)
    return [_Axis(*each) for each in zip(named, extents, resized, factors, *region.tolist(), strict=True)]


def _nearest(node: Node, axis: _Axis, transformation: str) -> Array:
    """Return the nearest element's place for each element of the result.

    Raises:
        ValueError: it depends on the rounding of the coordinates.
    """
    mode = node.text("nearest_mode", "round_prefer_floor")
    exact, rounded = (
        _rounded(axis.coordinates(transformation, kind), mode).clip(0, axis.extent - 1).astype("int64")
        for kind in (np.float64, np.float32)
    )
    if (exact != rounded).any():
        raise ValueError(
            f"with mode nearest: which of {axis.extent} elements of axis {axis.place} are nearest depends on how the "
            f"scale {axis.scale:.9g} is rounded; take the elements by Gather"
        )
    return exact


def _rounded(places: Array, mode: str) -> Array:
    match mode:
        case "round_prefer_floor":
            return np.ceil(places - places.dtype.type(0.5))
        case "round_prefer_ceil":
            return np.floor(places + places.dtype.type(0.5))
        case "floor":
            return np.floor(places)
        case "ceil":
            return np.ceil(places)
    raise ValueError(f"with nearest_mode {mode}")


def _taps(node: Node, axis: _Axis, places: Array) -> tuple[Array, Array]:
    """Return the elements that each element of the result is a sum of, and their weights: (resized, taps)."""
    is_cubic = node.text("mode", "nearest") == "cubic"
    stretch = max(1.0, 1 / axis.scale) if node.attributes.get("antialias", 0) else 1.0
    reach = math.ceil((2 if is_cubic else 1) * stretch)
    taps = np.floor(places).astype("int64")[:, None] + np.arange(1 - reach, reach + 1)
    distances = np.abs(places[:, None] - taps) / stretch
    weights = _cubic(distances, node.attributes.get("cubic_coeff_a", -0.75)) if is_cubic else 1 - distances.clip(0, 1)
    if node.attributes.get("exclude_outside", 0):
        weights = np.where((taps >= 0) & (taps < axis.extent), weights, 0)
    return taps.clip(0, axis.extent - 1), weights / weights.sum(1, keepdims=True)


def _cubic(x: Array, a: float) -> Array:
    """Return the weights of elements at a distance, as Keys gives them (1981)."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _weighted(node: Node, data: Any, axis: _Axis, taps: Array, weights: Array) -> Any:
    is_used = weights.any(0)

    def resize(data: te.Tensor, taps: te.Tensor, weights: te.Tensor) -> te.Tensor:
        def element(*places: Any) -> Any:
            before, place, behind = places[: axis.place], places[axis.place], places[axis.place + 1 :]
            parts = [data[(*before, taps[place, tap], *behind)] * weights[place, tap] for tap in range(is_used.sum())]
            return functools.reduce(operator.add, parts)

        shape = [axis.resized if place == axis.place else extent for place, extent in enumerate(data.shape)]
        return te.compute(shape, element, name="resize")

    tables = relax.const(taps[:, is_used], "int64"), relax.const(weights[:, is_used].astype(dtype_of(data)))
    return node.importer.bb.emit_te(resize, data, *tables, primfunc_name_hint="resize")


def _selected(node: Node, data: Any, axis: _Axis, places: Array) -> Any:
    times = axis.resized // axis.extent
    if times and np.array_equal(places, np.arange(axis.extent).repeat(times)):
        return node.emit(relax.op.repeat(data, times, axis.place))
    return node.emit(relax.op.take(data, relax.const(places, "int64"), axis.place, mode="clip"))


def _along(axis: _Axis, values: Array, rank: int) -> Array:
    return values.reshape([-1 if place == axis.place else 1 for place in range(rank)])


def _earlier(node: Node) -> Any:
    """Convert Upsample, and Resize before opset 11, which have scales only, and coordinates without half pixels.

    ONNX Runtime takes the nearest element in front if an axis grows, and the one behind if it shrinks.
    """
    scales = node.attributes.get("scales")
    scales = np.array(scales, "float32") if scales else node.constant(1)
    kinds = {bool(scale < 1) for scale in scales if scale != 1}
    if node.text("mode", "nearest") == "nearest" and len(kinds) == 2:
        raise ValueError("with mode nearest of axes that grow and axes that shrink; resize them one after the other")
    attributes = {
        "mode": node.text("mode", "nearest").encode(),
        "coordinate_transformation_mode": b"asymmetric",
        "nearest_mode": b"ceil" if kinds == {True} else b"floor",
    }
    inputs = [node.inputs[0], None, relax.const(scales, "float32"), None]
    return _resize(replace(node, inputs=inputs, attributes=attributes))


def _of_version(node: Node) -> Any:
    return _earlier(node) if node.operator == "Upsample" or node.opset < 11 else _resize(node)


CONVERTERS: dict[str, Converter] = {"Resize": _of_version, "Upsample": _of_version}

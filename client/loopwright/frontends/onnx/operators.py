"""Operators of ONNX in Relax that TVM's importer lacks, or translates to something else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import tvm
from tvm import relax, te, tirx

from loopwright.frontends.onnx.accumulation import wide
from loopwright.frontends.onnx.blocks import is_packed
from loopwright.frontends.onnx.node import Converter, Node, dtype_of, extents
from loopwright.frontends.onnx.products import product, summed_in_float32


def _is_inf(node: Node) -> Any:
    (data,) = node.inputs
    result = node.emit(relax.op.isinf(data))
    zero = relax.const(0, data.ty.dtype)
    if not node.attributes.get("detect_positive", 1):
        result = node.emit(relax.op.logical_and(result, relax.op.less(data, zero)))
    if not node.attributes.get("detect_negative", 1):
        result = node.emit(relax.op.logical_and(result, relax.op.greater(data, zero)))
    return result


def _bit_shift(node: Node) -> Any:
    """Convert a bit shift. A shift by all bits or more, or by a negative number, leaves only the sign."""
    data, shift = node.inputs
    dtype = str(data.ty.dtype)
    bits = tvm.runtime.DataType(dtype).bits
    inside = node.emit(relax.op.less(shift, relax.const(bits, dtype)))
    left = node.text("direction", "LEFT") == "LEFT"
    beyond = relax.const(0, dtype)
    if not dtype.startswith("u"):
        inside = node.emit(relax.op.logical_and(inside, relax.op.greater_equal(shift, relax.const(0, dtype))))
        if not left:
            beyond = node.emit(relax.op.right_shift(data, relax.const(bits - 1, dtype)))
    limited = node.emit(relax.op.where(inside, shift, relax.const(0, dtype)))
    return relax.op.where(inside, node.as_usual(data, limited), beyond)


def _pow(node: Node) -> Any:
    """Convert a power, whose result has the dtype of the base."""
    base, exponent = (node.importer.tensor(each) for each in node.inputs)
    dtype = str(base.ty.dtype)
    wide = dtype if "float" in dtype else "float64"
    result = node.emit(relax.op.power(node.cast(base, wide), node.cast(exponent, wide)))
    return result if wide == dtype else relax.op.astype(result, dtype)


def _dropout(node: Node) -> Any:
    """Drops nothing, unless the model is trained."""
    data, training = node.inputs[0], node.constant(2)
    if training is not None and bool(training):
        raise ValueError("which is in training mode; what is tuned is inference")
    mask = "bool" if node.opset >= 10 else str(data.ty.dtype)
    return relax.Tuple([data, node.emit(relax.op.ones_like(data, mask))]) if node.outputs > 1 else data


def _lp_normalization(node: Node) -> Any:
    (data,) = node.inputs
    axis, zero = node.attributes.get("axis", -1), relax.const(0, data.ty.dtype)
    if node.attributes.get("p", 2) == 1:
        norm = node.emit(relax.op.sum(relax.op.abs(data), axis, keepdims=True))
    else:
        norm = node.emit(relax.op.sqrt(relax.op.sum(relax.op.multiply(data, data), axis, keepdims=True)))
    return relax.op.where(relax.op.equal(norm, zero), zero, relax.op.divide(data, norm))


def _transposed_convolution(node: Node) -> Any:
    """Convert a transposed convolution. The attribute ``output_shape``, if present, decides the padding."""
    wanted = node.attributes.get("output_shape")
    if not wanted:
        return node.as_usual()
    data, kernel = (extents(each)[2:] for each in node.inputs[:2])
    ones, zeros = [1] * len(data), [0] * len(data)
    strides, dilations = node.attributes.get("strides", ones), node.attributes.get("dilations", ones)
    more = node.attributes.get("output_padding", zeros)
    whole = [
        (n - 1) * s + o + (k - 1) * d + 1 for n, s, o, k, d in zip(data, strides, more, kernel, dilations, strict=True)
    ]
    padded = [full - part for full, part in zip(whole, wanted[-len(data) :], strict=True)]
    # What lacks is added behind. Of an odd number of cells the one left over is cut off in front.
    output_padding = [extra + max(-total, 0) for extra, total in zip(more, padded, strict=True)]
    cut = [max(total, 0) for total in padded]
    before = [total // 2 if node.text("auto_pad", "NOTSET") == "SAME_UPPER" else total - total // 2 for total in cut]
    behind = [total - first for total, first in zip(cut, before, strict=True)]
    return node.as_usual(pads=before + behind, output_padding=output_padding, auto_pad=b"NOTSET")


def _one_hot(node: Node) -> Any:
    indices, _, values = node.inputs
    depth, axis = int(node.constant(1).item()), node.attributes.get("axis", -1)
    rank = len(indices.ty.shape)
    places = node.emit(relax.op.astype(indices, "int64"))
    from_end = relax.op.add(places, relax.const(depth, "int64"))
    places = node.emit(relax.op.where(relax.op.less(places, relax.const(0, "int64")), from_end, places))
    places = node.emit(relax.op.expand_dims(places, axis % (rank + 1)))
    shape = [depth if place == axis % (rank + 1) else 1 for place in range(rank + 1)]
    each = relax.const(np.arange(depth, dtype="int64").reshape(shape), "int64")
    off, on = (node.emit(relax.op.take(values, relax.const(place, "int64"), 0, mode="clip")) for place in (0, 1))
    return relax.op.where(node.emit(relax.op.equal(places, each)), on, off)


def _scatter(node: Node) -> Any:
    """Convert Scatter and ScatterElements, to ScatterND: TVM's misplaces the elements of fewer indices than data."""
    data, indices, updates = node.inputs[:3]
    shape, grid_shape = extents(data), extents(indices)
    axis = node.attributes.get("axis", 0) % len(shape)
    if all(extent == own for place, (extent, own) in enumerate(zip(grid_shape, shape, strict=True)) if place != axis):
        if node.operator == "ScatterElements":
            return node.as_usual()
        return node.importer._convert_operator("ScatterElements", node.inputs, node.attributes, 11)
    wide = node.emit(relax.op.astype(indices, "int64"))
    flat = node.emit(relax.op.reshape(wide, [math.prod(grid_shape), 1]))
    grid = np.indices(grid_shape).reshape(len(grid_shape), -1).T
    before, behind = (
        [relax.const(part, "int64")] if part.size else [] for part in (grid[:, :axis], grid[:, axis + 1 :])
    )
    places = node.emit(relax.op.concat([*before, flat, *behind], 1))
    flat_updates = node.emit(relax.op.reshape(updates, [math.prod(grid_shape)]))
    inputs = type(node.inputs)([data, places, flat_updates])
    return node.importer._convert_operator("ScatterND", inputs, node.attributes, max(node.opset, 11))


def _equal(node: Node) -> Any:
    """Convert a comparison, for which LLVM has no instruction if it is of truth values."""
    if dtype_of(node.inputs[0]) != "bool":
        return node.as_usual()
    return relax.op.logical_not(node.emit(relax.op.logical_xor(*node.inputs)))


def _grid_sample(node: Node) -> Any:
    """Convert a sample at places of a grid, halves in float32."""
    data, grid = node.inputs
    if wide(data) == dtype_of(data):
        return node.as_usual()
    whole, places = (node.emit(relax.op.astype(each, wide(each))) for each in (data, grid))
    return relax.op.astype(node.emit(node.as_usual(whole, places)), dtype_of(data))


def _eye_like(node: Node) -> Any:
    (data,) = node.inputs
    wanted = node.attributes.get("dtype")
    dtype = str(onnx.helper.tensor_dtype_to_np_dtype(wanted)) if wanted else str(data.ty.dtype)
    eye = node.emit(relax.op.eye_like(data, node.attributes.get("k", 0)))
    return relax.op.astype(eye, dtype)


def _cumulative_product(node: Node) -> Any:
    data, axis = node.inputs[0], int(node.constant(1).item())
    is_reversed = node.attributes.get("reverse", 0)
    if is_reversed:
        data = node.emit(relax.op.flip(data, axis))
    data = node.emit(relax.op.cumprod(data, axis, exclusive=bool(node.attributes.get("exclusive", 0))))
    return relax.op.flip(data, axis) if is_reversed else data


def _roi_align(node: Node) -> Any:
    if node.text("mode", "avg") == "max":
        raise ValueError("with mode max")
    return node.as_usual()


def _non_max_suppression(node: Node) -> Any:
    """Boxes that overlap by more than the threshold, 0 if it is left out; in TVM by as much, or more."""
    most, overlap, least = (node.constant(place) for place in (2, 3, 4))
    threshold = np.nextafter(np.float32(0 if overlap is None else overlap.item()), np.float32(np.inf))
    limits = (
        None if most is None else relax.const(most, "int64"),
        relax.const(float(threshold), "float32"),
        None if least is None else relax.const(least, "float32"),
    )
    return node.as_usual(node.inputs[0], node.inputs[1], *limits)


def _reverse_sequence(node: Node) -> Any:
    batch, time = node.attributes.get("batch_axis", 1), node.attributes.get("time_axis", 0)

    def reverse(data: te.Tensor, lengths: te.Tensor) -> te.Tensor:
        def element(*places: Any) -> Any:
            length = lengths[places[batch]].astype("int64")
            place = places[time]
            source = tirx.Select(place < length, length - 1 - place, place)
            return data[(*places[:time], source, *places[time + 1 :])]

        return te.compute(data.shape, element, name="reverse_sequence")

    return node.importer.bb.emit_te(reverse, *node.inputs, primfunc_name_hint="reverse_sequence")


def _fourier(node: Node) -> Any:
    """Convert a discrete Fourier transform to a product with a constant matrix."""
    data, length = node.inputs[0], node.constant(1)
    is_inverse, is_onesided = (bool(node.attributes.get(name, 0)) for name in ("inverse", "onesided"))
    if is_inverse and is_onesided:
        raise ValueError("with inverse and onesided")
    if node.opset < 20:
        axis = node.attributes.get("axis", 1)
    else:
        axis = -2 if (value := node.constant(2)) is None else int(value.item())
    rank = len(data.ty.shape)
    axis %= rank
    size = extents(data)[axis] if length is None else int(length.item())
    order = [place for place in range(rank - 1) if place != axis] + [axis, rank - 1]
    moved = node.emit(relax.op.permute_dims(data, order))
    result = transform(node, moved, size, is_inverse=is_inverse, is_onesided=is_onesided)
    return relax.op.permute_dims(result, [order.index(place) for place in range(rank)])


def transform(node: Node, data: Any, size: int, *, is_inverse: bool = False, is_onesided: bool = False) -> Any:
    """Return the Fourier transform over the last axis but one, of ``size`` elements.

    The last axis has the real and the imaginary part, or the real one only.
    """
    *outer, length, parts = extents(data)
    bins = size // 2 + 1 if is_onesided else size
    taken = np.arange(min(length, size))
    angle = 2 * np.pi * np.outer(taken, np.arange(bins)) / size * (1 if is_inverse else -1)
    wave = np.exp(1j * angle) / (size if is_inverse else 1)
    matrix = np.zeros((length, parts, bins, 2))
    matrix[taken, 0] = np.stack([wave.real, wave.imag], -1)
    if parts == 2:
        matrix[taken, 1] = np.stack([-wave.imag, wave.real], -1)
    flat = node.emit(relax.op.reshape(data, [*outer, length * parts]))
    weights = relax.const(matrix.reshape(length * parts, bins * 2), str(data.ty.dtype))
    return node.emit(relax.op.reshape(product(node, flat, weights), [*outer, bins, 2]))


def _short_time_fourier(node: Node) -> Any:
    """Windows of the signal, each transformed."""
    signal, window = node.inputs[0], node.inputs[2]
    step, window_length = int(node.constant(1).item()), node.constant(3)
    length = int(window_length.item()) if window_length is not None else extents(window)[0]
    batch, samples, *parts = [*extents(signal), 1][:3]
    frames = 1 + (samples - length) // step
    places = np.arange(frames)[:, None] * step + np.arange(length)
    signal = node.emit(relax.op.reshape(signal, [batch, samples, *parts]))
    taken = node.emit(relax.op.take(signal, relax.const(places.reshape(-1), "int64"), 1, mode="clip"))
    taken = node.emit(relax.op.reshape(taken, [batch, frames, length, *parts]))
    if window is not None:
        taken = node.emit(relax.op.multiply(taken, relax.op.reshape(window, [length, 1])))
    return transform(node, taken, length, is_onesided=bool(node.attributes.get("onesided", 1)))


def _constant(node: Node) -> Any:
    """TVM knows tensors only, of elements of whole bytes."""
    if "value" in node.attributes and is_packed(node.attributes["value"]):
        raise ValueError("of elements of 4 bits; make it an initializer")
    for name, dtype in (("value_float", "float32"), ("value_int", "int64")):
        for each in (name, f"{name}s"):
            if each in node.attributes:
                return relax.const(np.array(node.attributes[each], dtype), dtype)
    return node.as_usual()


CONVERTERS: dict[str, Converter] = {
    "BitShift": _bit_shift,
    "Constant": _constant,
    "ConvTranspose": summed_in_float32(_transposed_convolution),
    "CumProd": _cumulative_product,
    "DFT": _fourier,
    "Dropout": _dropout,
    "Equal": _equal,
    "EyeLike": _eye_like,
    "GridSample": _grid_sample,
    "IsInf": _is_inf,
    "LpNormalization": _lp_normalization,
    "NonMaxSuppression": _non_max_suppression,
    "OneHot": _one_hot,
    "Pow": _pow,
    "ReverseSequence": _reverse_sequence,
    "RoiAlign": _roi_align,
    "STFT": _short_time_fourier,
    "Scatter": _scatter,
    "ScatterElements": _scatter,
}

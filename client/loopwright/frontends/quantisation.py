"""Integers that stand for numbers, by a scale and a zero point, in plain operators of Relax.

A number is (integer - zero point) * scale. Scales and zero points are tensors of one axis, not scalars, which would be
part of a function's text: functions that differ in nothing else are one task. `loopwright.codegen.graph.integers`
makes products of integers of what is written here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm import relax

_Emit = Callable[[Any], Any]


def dequantised(emit: _Emit, data: Any, scale: Any, zero: Any = None, *, axis: int = 0) -> Any:
    """Return the numbers, of float32, that integers stand for.

    Args:
        scale: a tensor of one element, or one for each place of ``axis``, or one that is broadcast as it is.
        zero: the same, of the integers' dtype or of float32; None for 0.
    """
    numbers = emit(relax.op.astype(data, "float32"))
    if zero is not None and not _is_zero(zero):
        numbers = emit(relax.op.subtract(numbers, _along(emit, zero, axis, data)))
    return emit(relax.op.multiply(numbers, _along(emit, scale, axis, data)))


def quantised(emit: _Emit, data: Any, scale: Any, zero: Any = None, *, dtype: str, axis: int = 0) -> Any:
    """Return the integers next to numbers of float32, of two the even one; NaN becomes the least integer.

    Args:
        scale, zero: as for `dequantised`.
    """
    if len(scale.ty.shape) > 1:
        return limited(emit, emit(relax.op.divide(data, _along(emit, scale, axis, data))), zero, dtype=dtype, axis=axis)
    if zero is None:
        zero = relax.const(0, dtype)
    elif len(zero.ty.shape) > 1:
        raise ValueError("with a zero point for each block; quantise to signed integers without one")
    return emit(relax.op.quantize(data, _vector(scale), _vector(zero), axis, dtype))


def limited(emit: _Emit, scaled: Any, zero: Any = None, *, dtype: str, axis: int = 0) -> Any:
    """Return numbers, which are divided by their scale, as `quantised` does."""
    return quantised(emit, scaled, relax.const(1, "float32"), zero, dtype=dtype, axis=axis)


def unpacked(emit: _Emit, words: Any, bits: int) -> Any:
    """Return the unsigned integers of a few bits in uint8, the lowest bits first, along a last axis behind the others.

    ``[…, n]`` becomes ``[…, n, 8 / bits]``.
    """
    shifts = relax.const(np.arange(0, 8, bits, dtype="uint8"), "uint8")
    places = emit(relax.op.right_shift(emit(relax.op.expand_dims(words, -1)), shifts))
    return emit(relax.op.bitwise_and(places, relax.const(2**bits - 1, "uint8")))


def _is_zero(value: Any) -> bool:
    return isinstance(value, tvm.ir.GenericConst) and not value.value.numpy().any()


def _vector(value: Any) -> Any:
    """Return a constant as a tensor of one axis, unless it is 0 or 1."""
    if not isinstance(value, tvm.ir.GenericConst):
        return value
    array = value.value.numpy()
    plain = array.size == 1 and array.item() in (0, 1)
    return relax.const(array.reshape(() if plain else -1), str(array.dtype))


def _along(emit: _Emit, value: Any, axis: int, data: Any) -> Any:
    """Return a scale or zero point as a tensor of float32 that is broadcast along an axis of the data."""
    rank = len(data.ty.shape)
    own = [int(extent) for extent in value.ty.shape] if all(map(_is_known, value.ty.shape)) else None
    if isinstance(value, tvm.ir.GenericConst) and own is not None and len(own) < 2:
        array = value.value.numpy().astype("float32").reshape(-1)
        behind = [1] * (rank - 1 - axis % rank) if array.size > 1 else []
        return relax.const(array.reshape(-1, *behind), "float32")
    if str(value.ty.dtype) != "float32":
        value = emit(relax.op.astype(value, "float32"))
    if own is None or len(own) != 1 or own == [1]:
        return value
    return emit(relax.op.reshape(value, [own[0], *[1] * (rank - 1 - axis % rank)]))


def _is_known(extent: Any) -> bool:
    return isinstance(extent, tvm.tirx.IntImm)

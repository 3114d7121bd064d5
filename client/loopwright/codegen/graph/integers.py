"""Products and convolutions of integers of 8 bits, in place of those of the numbers that the integers stand for.

With a scale s and a zero point z of each operand, the sum of (a - za) sa (b - zb) sb is, without rounding up to the
last line,

    sum of a b  -  za (sum of b)  -  zb (sum of a)  +  depth za zb,    times sa sb.

Sums of weights are constants. The first sum is a product of operands of 8 bits into int32, for which processors have
instructions; what follows it is elementwise, and fuses with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import (
    CallRewriter,
    constant,
    dtype_of,
    op_name,
    permutation_of,
    rewrite_calls,
    shape_of,
)

_BYTES = frozenset(("int8", "uint8"))
_DEEPEST = 2**15
"""Products of numbers in a sum: of more, 255 * 255 each, int32 could overflow where float32 does not."""


_TOGETHER = 4
"""Channels of an image that an instruction multiplies, or two of them. If a few are missing, as one of the three of a
picture, they are padded: zeros in the kernel take less time than an image that is copied for each tap."""


def multiply_integers(mod: tvm.IRModule) -> tvm.IRModule:
    """Make products of int8 and uint8 of those of dequantised or widened integers.

    Of products of numbers the right operand must be constant, and of convolutions the kernel. Scales must not differ
    along the sum. Others stay as they are.
    """
    return rewrite_calls(mod, _Integers)


@dataclass(frozen=True)
class _Quantised:
    """Integers of 8 bits, with scale and zero point as tensors that are broadcast; None for 1 and 0."""

    data: Any
    scale: Any = None
    zero: Any = None


@mutator
class _Integers(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        if name == "quantize":
            return self._quantised_before(call)
        if name == "multiply":
            return self._by_stored_scale(call)
        if name not in ("matmul", "nn.conv1d", "nn.conv2d") or shape_of(call) is None:
            return call
        left, right = (self._read(operand) for operand in call.args)
        if name == "matmul" and left is None and right is not None and right.scale is not None:
            return self._scaled(call, right)
        if left is None or right is None or (left.scale is None) != (right.scale is None):
            return call
        right = self._signed(right)
        sums = self._product(call, left, right) if name == "matmul" else self._convolution(call, left, right)
        if sums is None:
            return call
        if left.scale is None:
            return sums
        numbers = self.emit(relax.op.astype(sums, "float32"))
        for scale in self._factors(left.scale, right.scale, sums, name):
            numbers = self.emit(relax.op.multiply(numbers, scale))
        return numbers

    def _quantised_before(self, call: tvm.ir.Call) -> Any:
        """Return integers of which numbers were made with one scale and zero point, and shall be made again.

        A number is off by two roundings of float32, far less than half a step.
        """
        inner = self._read(call.args[0])
        if inner is None or inner.scale is None or dtype_of(inner.data) != str(call.attrs.out_dtype):
            return call
        none = np.zeros(1, "float32")
        for part, again in ((inner.scale, call.args[1]), (inner.zero, call.args[2])):
            before, after = none if part is None else self._array(part), self._array(again)
            if before is None or after is None or before.size != 1 or after.size != 1 or before.item() != after.item():
                return call
        scale = self._array(inner.scale)
        return inner.data if scale is not None and 2.0**-100 < scale.item() < 2.0**100 else call

    def _by_stored_scale(self, call: tvm.ir.Call) -> Any:
        """Return sums of integers times the scale of a tensor and that of a weight, which is stored if it is constant.

        A number would be a part of the function's text: layers that differ in nothing else would be several functions.
        """
        for numbers, scale in (call.args, reversed(call.args)):
            wide, both = self.call_of(numbers, "astype"), self.call_of(scale, "multiply")
            if wide is None or both is None or shape_of(both) != () or dtype_of(wide.args[0]) != "int32":
                continue
            arrays = [self._array(each) for each in both.args]
            if any(array is not None for array in arrays):
                stored = [
                    each if array is None else constant(array.reshape(1))
                    for each, array in zip(both.args, arrays, strict=True)
                ]
                return relax.op.multiply(numbers, self.emit(relax.op.multiply(*stored)))
        return call

    def _read(self, expr: Any) -> _Quantised | None:
        """Return what a tensor stands for; None if it is not a tensor of 8 bits that is dequantised or widened."""
        moved = self.call_of(expr, "permute_dims", "reshape")
        if moved is not None:
            inner = self._read(moved.args[0])
            return None if inner is None else self._moved(moved, inner)
        scale, zero = None, None
        if (call := self.call_of(expr, "multiply")) is not None:
            expr, scale = sorted(call.args, key=lambda operand: -math.prod(shape_of(operand) or ()))
        if (call := self.call_of(expr, "subtract")) is not None:
            expr, zero = call.args
            known = self._array(zero)
            zero = zero if known is None or known.any() else None
        call = self.call_of(expr, "astype")
        wide = "int32" if scale is None else "float32"
        if call is None or dtype_of(call) != wide or dtype_of(call.args[0]) not in _BYTES:
            return None
        if any(part is not None and dtype_of(part) != wide for part in (scale, zero)):
            return None
        return _Quantised(call.args[0], scale, zero)

    def _moved(self, call: tvm.ir.Call, inner: _Quantised) -> _Quantised | None:
        """Return integers under a permutation or a reshape, where scale and zero point can follow."""
        parts = []
        for part in (inner.scale, inner.zero):
            if part is None or math.prod(shape_of(part) or ()) == 1:
                parts.append(part)
            elif op_name(call) == "permute_dims" and isinstance(self.value(part), tvm.ir.GenericConst):
                array = self.value(part).value.numpy()
                axes = permutation_of(call)
                full = array.reshape([1] * (len(axes) - array.ndim) + list(array.shape))
                parts.append(constant(full.transpose(axes)))
            else:
                return None
        data = self.value(inner.data)
        if not isinstance(data, tvm.ir.GenericConst):
            return _Quantised(self.emit(tvm.ir.Call(call.op, [inner.data, *call.args[1:]], call.attrs)), *parts)
        array = data.value.numpy()
        is_permuted = op_name(call) == "permute_dims"
        moved = array.transpose(permutation_of(call)) if is_permuted else array.reshape(shape_of(call) or ())
        return _Quantised(constant(moved), *parts)

    def _signed(self, operand: _Quantised) -> _Quantised:
        """Return constants of uint8 as int8, which instructions multiply with uint8 and int8; others as they are."""
        data = self.value(operand.data)
        if not isinstance(data, tvm.ir.GenericConst) or dtype_of(data) != "uint8":
            return _Quantised(data, operand.scale, operand.zero) if isinstance(data, tvm.ir.GenericConst) else operand
        zero = np.zeros(1, "int32") if operand.zero is None else self._array(operand.zero)
        if zero is None:
            return operand
        shifted = zero.astype("int32") - 128
        signed = (data.value.numpy().astype("int16") - 128).astype("int8")
        return _Quantised(constant(signed), operand.scale, constant(shifted) if shifted.any() else None)

    def _product(self, call: tvm.ir.Call, left: _Quantised, right: _Quantised) -> Any:
        depth = (shape_of(left.data) or (0,))[-1]
        is_constant = isinstance(right.data, tvm.ir.GenericConst) and len(shape_of(right.data) or ()) == 2
        if left.scale is not None and not (is_constant and depth <= _DEEPEST):
            return None
        if not all(_is_even(part, -1) for part in (left.scale, left.zero)):
            return None
        if not all(_is_even(part, -2) for part in (right.scale, right.zero)):
            return None
        sums = self.emit(relax.op.matmul(left.data, right.data, out_dtype="int32"))
        if left.zero is not None:
            sums = self._less(sums, self._times(left.zero, self._sums(right.data, -2)))
        if right.zero is not None:
            sums = self._less(sums, self._times(right.zero, self._sums(left.data, -1)))
        if left.zero is not None and right.zero is not None:
            both = self._times(self._times(left.zero, right.zero), constant(np.array([depth], "int32")))
            sums = self.emit(relax.op.add(sums, both))
        return sums

    def _scaled(self, call: tvm.ir.Call, right: _Quantised) -> Any:
        """Return a product of numbers with a widened matrix, which the scales of its columns multiply afterwards."""
        matrix = self.value(right.data)
        if not isinstance(matrix, tvm.ir.GenericConst) or len(shape_of(matrix) or ()) != 2:
            return call
        if self._array(right.scale) is None or dtype_of(call) != "float32":
            return call
        if not all(_is_even(part, -2) for part in (right.scale, right.zero)):
            return call
        wide = self.emit(relax.op.astype(matrix, "float32"))
        if right.zero is not None:
            wide = self.emit(relax.op.subtract(wide, right.zero))
        product = self.emit(relax.op.matmul(call.args[0], wide, out_dtype=call.attrs.out_dtype))
        return relax.op.multiply(product, self._factors(None, right.scale, product, "matmul")[0])

    def _convolution(self, call: tvm.ir.Call, left: _Quantised, right: _Quantised) -> Any:
        """Return the sums of a convolution of 8 bits; of 16 if the zero points cannot be sums that are constants."""
        kernel, attrs = right.data, call.attrs
        if not isinstance(kernel, tvm.ir.GenericConst) or (right.zero is not None and self._array(right.zero) is None):
            return None
        array, rank = kernel.value.numpy(), len(shape_of(kernel) or ())
        letters = str(attrs.kernel_layout)
        if (str(attrs.data_layout), str(attrs.out_layout)) != (f"NC{letters[2:]}",) * 2 or letters[:2] != "OI":
            return None
        if math.prod(array.shape[1:]) > _DEEPEST or not _is_of_channels(right.scale, rank):
            return None
        if any(math.prod(shape_of(part) or ()) != 1 for part in (left.scale, left.zero) if part is not None):
            return None
        padding, data = [int(extent) for extent in attrs.padding], left.data
        zero = None if left.zero is None else self._array(left.zero)
        missing = -array.shape[1] % _TOGETHER if int(attrs.groups) == 1 else 0
        if 3 * missing > array.shape[1]:
            missing = array.shape[1] % 2 if int(attrs.groups) == 1 else 0
        if right.zero is not None or (any(padding) and left.zero is not None and zero is None):
            data, kernel, left = self._centred(left), self._centred(right), replace(left, zero=None)
        elif (any(padding) and zero is not None) or missing:
            half = len(padding) // 2
            sides = [padding[side * half + axis] for axis in range(half) for side in range(2)]
            value = 0.0 if zero is None else float(zero.item())
            data = self.emit(relax.op.nn.pad(data, [0, 0, 0, missing, *sides], "constant", value))
            kernel = constant(np.pad(array, [(0, 0), (0, missing), *[(0, 0)] * half]))
            padding = [0] * len(padding)
        sums = self.emit(
            getattr(relax.op.nn, str(call.op.name).removeprefix("relax.nn."))(
                data,
                kernel,
                strides=[int(extent) for extent in attrs.strides],
                padding=padding,
                dilation=[int(extent) for extent in attrs.dilation],
                groups=int(attrs.groups),
                data_layout=str(attrs.data_layout),
                kernel_layout=letters,
                out_dtype="int32",
            )
        )
        if left.zero is None:
            return sums
        total = array.astype("int32").sum(tuple(range(1, rank))).reshape(1, -1, *[1] * (rank - 2))
        return self._less(sums, self._times(left.zero, constant(total.astype("int32"))))

    def _centred(self, operand: _Quantised) -> Any:
        """Return integers less their zero point, as int16."""
        array, zero = self._array(operand.data), self._array(operand.zero)
        if array is not None and zero is not None:
            return constant(array.astype("int16") - zero.astype("int16"))
        wide = constant(array.astype("int16")) if array is not None else relax.op.astype(operand.data, "int16")
        if operand.zero is None:
            return self.emit(wide)
        return self.emit(relax.op.subtract(self.emit(wide), self.emit(relax.op.astype(operand.zero, "int16"))))

    def _factors(self, left: Any, right: Any, sums: Any, name: str) -> Sequence[Any]:
        """Return what the sums are multiplied by: one number for each column or channel, if both scales are known."""
        array, known = self._array(right), self._array(left)
        if array is None:
            return right, left
        shape = list(shape_of(self.builder_.normalize(sums)) or ())
        places = [-1] if name == "matmul" else [1, -1, *[1] * (len(shape) - 2)]
        count = shape[-1] if name == "matmul" else shape[1]
        each = np.broadcast_to(array.reshape(-1), (count,)).reshape(places)
        if known is None or known.size > 1:
            return constant(each), left
        return [constant(each * known.reshape(()))]

    def _array(self, expr: Any) -> np.ndarray[Any, Any] | None:
        value = None if expr is None else self.value(expr)
        return value.value.numpy() if isinstance(value, tvm.ir.GenericConst) else None

    def _sums(self, data: Any, axis: int) -> Any:
        """Return the sums of integers over an axis, which stays, as int32."""
        array = self._array(data)
        if array is not None:
            sums = array.sum(axis, dtype="int32", keepdims=True)
            return constant(sums.reshape(-1) if sums.ndim == 2 and axis == -2 else sums)
        return self.emit(relax.op.sum(self.emit(relax.op.astype(data, "int32")), axis, keepdims=True))

    def _times(self, left: Any, right: Any) -> Any:
        arrays = [self._array(each) for each in (left, right)]
        if arrays[0] is not None and arrays[1] is not None:
            return constant(arrays[0].astype("int32") * arrays[1].astype("int32"))
        whole = [
            each if dtype_of(each) == "int32" else self.emit(relax.op.astype(each, "int32")) for each in (left, right)
        ]
        return self.emit(relax.op.multiply(*whole))

    def _less(self, sums: Any, other: Any) -> Any:
        array = self._array(other)
        return sums if array is not None and not array.any() else self.emit(relax.op.subtract(sums, other))


def _is_even(part: Any, axis: int) -> bool:
    """Return whether a scale or zero point is the same along an axis of the tensor that it belongs to."""
    shape = () if part is None else shape_of(part)
    return shape is not None and (len(shape) < -axis or shape[axis] == 1)


def _is_of_channels(part: Any, rank: int) -> bool:
    """Return whether the scale of a kernel is one number, or one for each of the channels that are computed."""
    shape = () if part is None else shape_of(part)
    if shape is None:
        return False
    return math.prod(shape) == 1 or (
        isinstance(part, tvm.ir.GenericConst) and len(shape) == rank == shape.count(1) + 1 and shape[0] > 1
    )

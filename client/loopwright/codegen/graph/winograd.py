"""Convolutions of 3x3 taps by Winograd's minimal filtering F(4x4, 3x3), with a fourth of the multiplications.

Tiles of 6x6 elements of the image, which overlap, and the kernels are transformed. In the transformed space the
convolution is 36 products of matrices, whose results are transformed back to tiles of 4x4 outputs. The kernels are
constants and are transformed here. (Lavin and Gray, Fast algorithms for convolutional neural networks, CVPR 2016; the
matrices are those of Toom and Cook's interpolation at 0, 1, -1, 2, -2 and infinity.)

Sums are of other terms than the convolution's. The largest error, as a share of the largest output, is 5e-6 to 1.4e-5
for 64 to 256 channels; that of the convolution itself is 3e-7 to 5e-7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax, te, tirx
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import (
    OPAQUE,
    OUTPUT_FUSABLE,
    CallRewriter,
    constant,
    dtype_of,
    reshaped,
    rewrite_calls,
    shape_of,
)

PASS = "Winograd"
"""Under ``tvm.transform.PassContext(disabled_pass=["Winograd"])`` convolutions sum their own terms."""

PAD, LINES, IMAGE, ROWS = "winograd_pad", "winograd_lines", "winograd_image", "winograd_rows"
"""Names of blocks: the image is padded, its lines are transformed, then its columns; the lines of a result are."""
OUTPUTS = 4
"""Of a tile, in either direction."""
_TAPS = 3
SIZE = OUTPUTS + _TAPS - 1
"""Of a tile of the image."""

_IMAGE = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
_KERNEL = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)
_RESULT = ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1))

_FLOP_PER_BYTE = 4.0
"""What a byte that is moved costs in the estimate. Not tuned."""
_WORTH = 0.7
"""Share of the convolution's time, by the estimate, from which the transformation is worth it. Not tuned."""


@dataclass(frozen=True)
class _Convolution:
    """Over NHWC: image (batch, height, width, channels), result (batch, rows, columns, outputs)."""

    image: tuple[int, ...]
    result: tuple[int, ...]
    padding: tuple[int, int]
    """At the top and the left."""

    @property
    def tiles(self) -> tuple[int, int, int]:
        """Tiles by image, line and column."""
        batch, rows, columns, _ = self.result
        return batch, -(-rows // OUTPUTS), -(-columns // OUTPUTS)

    @property
    def is_worth_it(self) -> bool:
        """Whether less work makes up for what is written and read in between, and for the larger kernels."""
        channels, outputs, tiles = self.image[-1], self.result[-1], math.prod(self.tiles)
        direct = 2 * _TAPS**2 * math.prod(self.result) * channels
        products = 2 * SIZE**2 * tiles * channels * outputs
        moved = 4 * SIZE**2 * (2 * tiles * (channels + outputs) + channels * outputs)
        return products + _FLOP_PER_BYTE * moved < _WORTH * direct


def switched_off() -> tvm.transform.PassContext:
    """Return the current pass context with `PASS` among its disabled passes."""
    current = tvm.transform.PassContext.current()
    return tvm.transform.PassContext(
        opt_level=current.opt_level,
        required_pass=list(current.required_pass),
        disabled_pass=[*current.disabled_pass, PASS],
        instruments=list(current.instruments),
        config=dict(current.config),
    )


def use_winograd(mod: tvm.IRModule) -> tvm.IRModule:
    """Transform the convolutions of float32 over NHWC, with constant kernels and stride 1, for which it is worth it."""
    if PASS in tvm.transform.PassContext.current().disabled_pass:
        return mod
    return rewrite_calls(mod, _Winograd)


@mutator
class _Winograd(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        convolution = _described(call) if name == "nn.conv2d" else None
        if convolution is None or not convolution.is_worth_it:
            return call
        tiles, outputs = math.prod(convolution.tiles), convolution.result[-1]
        kernel = constant(transformed_kernel(call.args[1].value.numpy()))
        image = self.builder_.call_te(
            lambda data: _transformed_image(data, convolution),
            call.args[0],
            primfunc_name_hint="winograd_image",
            primfunc_attrs={"op_pattern": OPAQUE},
        )
        product = self.emit(relax.op.matmul(self.emit(image), kernel))
        product = self.emit(reshaped(product, (SIZE * SIZE, tiles, outputs)))
        return self.builder_.call_te(
            lambda data: _result(data, convolution),
            product,
            primfunc_name_hint="winograd_result",
            primfunc_attrs={"op_pattern": OUTPUT_FUSABLE},
        )


def transformed_kernel(kernel: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a kernel [3, 3, channels, outputs] as matrices [36, channels, outputs]."""
    matrix = np.array(_KERNEL)
    transformed = np.einsum("ai,bj,ijco->abco", matrix, matrix, kernel.astype(np.float64))
    return transformed.reshape(SIZE * SIZE, *kernel.shape[2:]).astype(kernel.dtype)


def _described(call: tvm.ir.Call) -> _Convolution | None:
    """Return a convolution in short; None if its form is another one."""
    attrs, kernel = call.attrs, call.args[1]
    layouts = (str(attrs.data_layout), str(attrs.kernel_layout), str(attrs.out_layout) or "NHWC")
    image, result = shape_of(call.args[0]), shape_of(call)
    if layouts != ("NHWC", "HWIO", "NHWC") or not isinstance(kernel, tvm.ir.GenericConst):
        return None
    if image is None or result is None or (shape_of(kernel) or ())[:2] != (_TAPS, _TAPS) or int(attrs.groups) != 1:
        return None
    if any(int(step) != 1 for step in (*attrs.strides, *attrs.dilation)):
        return None
    if {dtype_of(call), dtype_of(call.args[0]), dtype_of(kernel)} != {"float32"}:
        return None
    padding = [int(extent) for extent in attrs.padding]
    return _Convolution(image, result, (padding[0], padding[1] if len(padding) > 1 else padding[0]))


def _transformed_image(data: te.Tensor, convolution: _Convolution) -> te.Tensor:
    """Return tiles of the image as matrices [36, tiles, channels]: padded, then lines, then columns transformed."""
    _, height, width, channels = convolution.image
    batch, lines, columns = convolution.tiles
    top, left = convolution.padding

    def padded_element(n: Any, y: Any, x: Any, c: Any) -> Any:
        y, x = y - top, x - left
        inside = tirx.all(y >= 0, y < height, x >= 0, x < width)
        return tirx.if_then_else(inside, data(n, y, x, c), tirx.const(0, data.dtype))

    extents = (lines * OUTPUTS + _TAPS - 1, columns * OUTPUTS + _TAPS - 1)
    padded = te.compute((batch, *extents, channels), padded_element, name=PAD)

    def line(a: Any, j: Any, t: Any, c: Any) -> Any:
        n, y, x = t // (lines * columns), t // columns % lines * OUTPUTS, t % columns * OUTPUTS
        return _combined(_IMAGE, a, lambda i: padded(n, y + i, x + j, c))

    tiles = math.prod(convolution.tiles)
    transformed = te.compute((SIZE, SIZE, tiles, channels), line, name=LINES)
    return te.compute(
        (SIZE * SIZE, tiles, channels),
        lambda ab, t, c: _combined(_IMAGE, ab % SIZE, lambda j: transformed(ab // SIZE, j, t, c)),
        name=IMAGE,
    )


def _result(product: te.Tensor, convolution: _Convolution) -> te.Tensor:
    """Return the outputs from matrices [36, tiles, outputs]: lines, then columns transformed."""
    batch, rows, _, outputs = convolution.result
    _, lines, columns = convolution.tiles

    def line(n: Any, y: Any, x: Any, b: Any, o: Any) -> Any:
        t = (n * lines + y // OUTPUTS) * columns + x
        return _combined(_RESULT, y % OUTPUTS, lambda a: product(a * SIZE + b, t, o))

    transformed = te.compute((batch, rows, columns, SIZE, outputs), line, name=ROWS)
    return te.compute(
        convolution.result,
        lambda n, y, x, o: _combined(_RESULT, x % OUTPUTS, lambda b: transformed(n, y, x // OUTPUTS, b, o)),
        name="winograd_result",
    )


def _combined(matrix: Sequence[Sequence[int]], row: Any, element: Callable[[int], Any]) -> Any:
    """Return the sum of the elements with the factors of a row of the matrix, which is chosen by a variable."""
    sums = [_sum([(factor, place) for place, factor in enumerate(factors) if factor], element) for factors in matrix]
    value = sums[-1]
    for number in reversed(range(len(sums) - 1)):
        value = tirx.Select(row == number, sums[number], value)
    return value


def _sum(terms: Sequence[tuple[int, int]], element: Callable[[int], Any]) -> Any:
    value: Any = None
    for factor, place in terms:
        term = element(place)
        term = term if factor in (1, -1) else term * tirx.const(abs(factor), "float32")
        if value is None:
            value = term if factor > 0 else tirx.const(0, "float32") - term
        else:
            value = value + term if factor > 0 else value - term
    return value

"""Convolutions of 3x3 taps by Winograd's minimal filtering F(4x4, 3x3), with a fourth of the multiplications.

Tiles of 6x6 elements of the image, which overlap, and the kernels are transformed. In the transformed space the
convolution is 36 products of matrices, whose results are transformed back to tiles of 4x4 outputs. The kernels are
constants and are transformed here. (Lavin and Gray, Fast algorithms for convolutional neural networks, CVPR 2016; the
matrices are those of Toom and Cook's interpolation at 0, 1, -1, 2, -2 and infinity.)

An infinity or NaN in a tile of the image would make all outputs of the tile NaN, and an outlier would drown the outputs
that do not read it. The outputs of such tiles are therefore sums of the convolution's own terms.

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
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from loopwright.codegen.graph.nests import extents, nest
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
UNSAFE, DIRECT = "winograd_unsafe", "winograd_direct"
"""Which tiles need sums of the convolution's own terms, and these sums, which are computed for no other tiles."""
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

_ENDS = (0, SIZE - 1)
"""Lines of `_IMAGE`: one reads the even elements of a line, the other one the odd elements. Of the four transformed
elements that they make, each element of the tile is thus in one, whose product is not finite if the element is not."""
_LARGEST = 1e30
"""Beyond it, what is added up for a result may overflow although the result does not."""
_OUTLIER = 1e4
"""How much larger than the second largest one of the four products that of an outlier is. Not tuned."""

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
        taps = call.args[1].value.numpy()
        if not np.isfinite(taps).all():
            return call
        kernel = constant(transformed_kernel(taps))
        image = self.builder_.call_te(
            lambda data: _transformed_image(data, convolution),
            call.args[0],
            primfunc_name_hint="winograd_image",
            primfunc_attrs={"op_pattern": OPAQUE},
        )
        product = self.emit(relax.op.matmul(self.emit(image), kernel))
        product = self.emit(reshaped(product, (SIZE * SIZE, tiles, outputs)))
        result = self.builder_.add_func(_result(convolution), "winograd_result")
        return relax.call_tir(result, [product, call.args[0], constant(taps.reshape(-1))], out_ty=call.ty)


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
    channels = convolution.image[-1]
    batch, lines, columns = convolution.tiles
    sizes = (lines * OUTPUTS + _TAPS - 1, columns * OUTPUTS + _TAPS - 1)
    padded = te.compute(
        (batch, *sizes, channels),
        lambda *axes: _element(data, convolution, axes, lambda element: element),
        name=PAD,
    )

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


def _element(data: Any, convolution: _Convolution, axes: Sequence[Any], use: Callable[[Any], Any]) -> Any:
    """Return ``use`` of an element of the padded image if it is one of the image, and 0 if it is padding."""
    _, height, width, _ = convolution.image
    n, y, x, c = axes
    y, x = y - convolution.padding[0], x - convolution.padding[1]
    inside = tirx.all(y >= 0, y < height, x >= 0, x < width)
    return tirx.if_then_else(inside, use(data[n, y, x, c]), tirx.const(0, "float32"))


def _result(convolution: _Convolution) -> tirx.PrimFunc:
    """Return the function of matrices [36, tiles, outputs], the image and the kernel (flat) that makes the outputs.

    Lines of the matrices are transformed, then columns. Outputs of unsafe tiles are sums of the convolution's terms.
    The kernel is flat because rules might pack one with axes.
    """
    _, rows, _, outputs = convolution.result
    batch, lines, columns = convolution.tiles
    channels = convolution.image[-1]
    with IRBuilder() as builder, T.prim_func(is_private=True, s_tir=True):
        T.func_name("winograd_result")
        T.func_attr({"op_pattern": OUTPUT_FUSABLE, "tirx.noalias": True})
        product = T.arg("product", T.Buffer(extents(SIZE * SIZE, batch * lines * columns, outputs)))
        image = T.arg("image", T.Buffer(extents(*convolution.image)))
        kernel = T.arg("kernel", T.Buffer(extents(_TAPS * _TAPS * channels * outputs)))
        result = T.arg("result", T.Buffer(extents(*convolution.result)))
        unsafe = T.sblock_alloc_buffer(extents(batch, lines, columns), "int32")
        direct = T.sblock_alloc_buffer(extents(batch, lines * OUTPUTS, columns * OUTPUTS, outputs))
        transformed = T.sblock_alloc_buffer(extents(batch, rows, columns, SIZE, outputs))

        with nest(UNSAFE, batch, lines, columns) as (n, y, x), T.grid(1):
            # In a loop, so that it is inlined nowhere: TVM would declare anew what the next block reads.
            tile = (n * lines + y) * columns + x
            is_unsafe = _is_unsafe([product[a * SIZE + b, tile, 0] for a in _ENDS for b in _ENDS])
            T.buffer_store(unsafe, tirx.Cast("int32", is_unsafe), [n, y, x])
        with nest(DIRECT, batch, lines, columns, OUTPUTS, OUTPUTS, outputs) as (n, y, x, p, q, o):
            place = [n, y * OUTPUTS + p, x * OUTPUTS + q]
            # Of its own sums, the block reads only those that it has written.
            T.reads(unsafe[n, y, x], *(tensor[_whole(tensor)] for tensor in (image, kernel)))
            T.writes(direct[*place, o])
            with T.If(unsafe[n, y, x] != 0), T.Then(), T.grid(*extents(_TAPS, _TAPS, channels)) as (i, j, c):
                tap = kernel[((i * _TAPS + j) * channels + c) * outputs + o]
                term = _element(image, convolution, (n, place[1] + i, place[2] + j, c), lambda element: element * tap)
                is_first = tirx.all(i == 0, j == 0, c == 0)
                before = tirx.Select(is_first, tirx.const(0, "float32"), direct[*place, o])
                T.buffer_store(direct, before + term, [*place, o])
        with nest(ROWS, batch, rows, columns, SIZE, outputs) as (n, y, x, b, o):
            tile = (n * lines + y // OUTPUTS) * columns + x
            line = _combined(_RESULT, y % OUTPUTS, lambda a: product[a * SIZE + b, tile, o])
            T.buffer_store(transformed, line, [n, y, x, b, o])
        with nest("winograd_result", *convolution.result) as (n, y, x, o):
            column = _combined(_RESULT, x % OUTPUTS, lambda b: transformed[n, y, x // OUTPUTS, b, o])
            is_direct = unsafe[n, y // OUTPUTS, x // OUTPUTS] != 0
            T.buffer_store(result, tirx.if_then_else(is_direct, direct[n, y, x, o], column), [n, y, x, o])
    return builder.get()


def _is_unsafe(ends: Sequence[Any]) -> Any:
    """Return whether four products of a tile show NaN, an infinity, a huge number or an outlier."""
    first, second, third, fourth = map(tirx.abs, ends)
    largest = [tirx.max(first, second), tirx.max(third, fourth)]
    next_largest = tirx.max(tirx.min(*largest), tirx.max(tirx.min(first, second), tirx.min(third, fourth)))
    is_outlier = tirx.all(next_largest > 0, tirx.max(*largest) > next_largest * tirx.const(_OUTLIER, "float32"))
    total = first + second + third + fourth
    return tirx.any(tirx.isnan(total), total > tirx.const(_LARGEST, "float32"), is_outlier)


def _whole(tensor: Any) -> tuple[slice, ...]:
    return tuple(slice(0, extent) for extent in tensor.shape)


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

"""Convolutions and poolings that Loopwright's rules schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax, te, tirx, topi

from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.graph import channel_scales, pooled_means
from loopwright.codegen.graph.winograd import use_winograd
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.program.lowering import lower
from tests.support.rule_programs import TARGET, function


def conv_nhwc(
    size: int,
    inputs: int,
    outputs: int,
    window: int,
    stride: int = 1,
    *,
    batch: int = 1,
    dilation: int = 1,
    moved: bool = False,
    dtype: str = "float32",
) -> tvm.IRModule:
    """Return a convolution of square images with the channels last, a bias and relu.

    With ``moved``, the result has the channels first. Factors of ``dtype`` are summed in float32.
    """
    x = te.placeholder((batch, size, size, inputs), dtype, name="x")
    w = te.placeholder((window, window, inputs, outputs), dtype, name="w")
    bias = te.placeholder((outputs,), name="bias")
    y = topi.nn.conv2d_nhwc(x, w, stride, dilation * (window // 2), dilation, out_dtype="float32")
    result = topi.nn.relu(topi.add(y, bias))
    return function(x, w, bias, topi.transpose(result, (0, 3, 1, 2)) if moved else result)


def byte_conv(
    size: int,
    inputs: int,
    outputs: int,
    window: int,
    stride: int = 1,
    *,
    batch: int = 1,
    dtypes: tuple[str, str] = ("uint8", "int8"),
    zero_point: int = 0,
    scaled: bool = True,
    turned: bool = False,
) -> tvm.IRModule:
    """Return a convolution of square images of bytes in int32, with the channels last; ``scaled`` in bytes again.

    The result is ``turned`` to have the channels first.
    """
    x = te.placeholder((batch, size, size, inputs), dtypes[0], name="x")
    w = te.placeholder((window, window, inputs, outputs), dtypes[1], name="w")
    scale = te.placeholder((outputs,), name="scale")
    image = x
    if zero_point:
        shifted = te.compute(
            x.shape, lambda *i: x(*i).astype("int16") - tirx.const(zero_point, "int16"), name="shifted"
        )
        image = shifted
    y = topi.nn.conv(
        image,
        w,
        [stride] * 2,
        [window // 2] * 4,
        [1, 1],
        1,
        data_layout="NHWC",
        kernel_layout="HWIO",
        out_dtype="int32",
    )
    if not scaled:
        return function(x, w, topi.transpose(y, (0, 3, 1, 2)) if turned else y)
    real = te.compute(y.shape, lambda n, i, j, o: te.nearbyint(y[n, i, j, o].astype("float32") * scale[o] * 1e-3))
    result = te.compute(y.shape, lambda *i: te.min(te.max(real(*i), 0.0), 255.0).astype("uint8"), name="result")
    return function(x, w, scale, topi.transpose(result, (0, 3, 1, 2)) if turned else result)


def conv_nchw(
    size: int, inputs: int, outputs: int, window: int, stride: int = 1, *, batch: int = 1, groups: int = 1
) -> tvm.IRModule:
    """Return a convolution of square images with the channels first, and the sum with another image."""
    x = te.placeholder((batch, inputs, size, size), name="x")
    w = te.placeholder((outputs, inputs // groups, window, window), name="w")
    if groups == 1:
        y = topi.nn.conv2d_nchw(x, w, stride, window // 2, 1)
    else:
        y = topi.nn.group_conv2d_nchw(x, w, stride, window // 2, 1, groups)
    other = te.placeholder(y.shape, name="other")
    return function(x, w, other, topi.add(y, other))


def conv_1d(
    size: int, inputs: int, outputs: int, window: int, stride: int = 1, *, activated: bool = False
) -> tvm.IRModule:
    """Return a convolution of lines, with nothing after it or, ``activated``, padded and with a bias and tanh."""
    x = te.placeholder((1, inputs, size), name="x")
    w = te.placeholder((outputs, inputs, window), name="w")
    y = topi.nn.conv1d_ncw(x, w, stride, window // 2 if activated else "VALID", 1)
    if not activated:
        return function(x, w, y)
    bias = te.placeholder((1, outputs, 1), name="bias")
    return function(x, w, bias, topi.tanh(topi.add(y, bias)))


def conv_3d(size: int, inputs: int, outputs: int, window: int, *, batch: int = 1) -> tvm.IRModule:
    """Return a convolution of cubes with the channels first, and relu."""
    x = te.placeholder((batch, inputs, size, size, size), name="x")
    w = te.placeholder((outputs, inputs, window, window, window), name="w")
    return function(x, w, topi.nn.relu(topi.nn.conv3d_ncdhw(x, w, 1, window // 2, 1, 1)))


def transposed_nhwc(
    size: int, inputs: int, outputs: int, stride: int, taps: int, cut: int, *, lacking: int = 0
) -> tvm.IRModule:
    """Return a transposed convolution by phases, of which ``cut`` pixels at the top and the left are left out.

    The last ``lacking`` phases of either direction have a tap less.
    """
    x = te.placeholder((1, size, size, inputs), name="x")
    w = te.placeholder((stride, stride, taps, taps, inputs, outputs), name="w")
    border = taps - 1
    padded = topi.nn.pad(x, (0, border, border, 0), (0, border, border, 0), name="pad_temp")
    i, j = te.reduce_axis((0, taps), name="i"), te.reduce_axis((0, taps), name="j")
    c = te.reduce_axis((0, inputs), name="c")
    steps, kernel = size + border, taps * stride - lacking

    def term(n: Any, y: Any, x: Any, p: Any, q: Any, o: Any) -> Any:
        product = padded[n, y + i, x + j, c] * w[p, q, i, j, c, o]
        taken = tirx.all(p + stride * (taps - 1 - i) < kernel, q + stride * (taps - 1 - j) < kernel)
        return tirx.Select(taken, product, tirx.const(0, "float32")) if lacking else product

    phases = te.compute(
        (1, steps, steps, stride, stride, outputs),
        lambda *indices: te.sum(term(*indices), axis=[i, j, c]),
        name="phases",
    )
    extent = steps * stride - 2 * cut

    def pixel(n: tvm.ir.Var, y: tvm.ir.Var, x: tvm.ir.Var, o: tvm.ir.Var) -> tvm.ir.PrimExpr:
        y, x = y + cut, x + cut
        return phases[n, y // stride, x // stride, y % stride, x % stride, o]

    return function(x, w, topi.nn.relu(te.compute((1, extent, extent, outputs), pixel, name="interleave")))


def depthwise_nhwc(size: int, channels: int, window: int, stride: int, *, batch: int = 1) -> tvm.IRModule:
    """Return a depthwise convolution with the channels last, and relu6."""
    x = te.placeholder((batch, size, size, channels), name="x")
    w = te.placeholder((window, window, channels, 1), name="w")
    return function(x, w, topi.clip(topi.nn.depthwise_conv2d_nhwc(x, w, stride, window // 2, 1), 0.0, 6.0))


def pooled_depthwise_nhwc(size: int, channels: int, window: int, stride: int) -> tvm.IRModule:
    """Return a depthwise convolution with the channels last, SiLU, and the mean of its pixels as a second result."""
    x = te.placeholder((1, size, size, channels), name="x")
    w = te.placeholder((window, window, channels, 1), name="w")
    y = topi.nn.depthwise_conv2d_nhwc(x, w, stride, window // 2, 1)
    activated = topi.multiply(y, topi.sigmoid(y))
    return function(x, w, activated, pooled_means.mean(activated))


def scaled_nhwc(size: int, inputs: int, outputs: int) -> tvm.IRModule:
    """Return a convolution of 1 x 1 with the channels last, whose image has a factor for each channel, and relu."""
    x, factors = te.placeholder((1, size, size, inputs), name="x"), te.placeholder((1, 1, 1, inputs), name="factors")
    w = te.placeholder((1, 1, inputs, outputs), name="w")
    return function(x, factors, w, topi.nn.relu(channel_scales.scaled(x, factors, w)))


def byte_depthwise(size: int, channels: int, window: int, stride: int) -> tvm.IRModule:
    """Return a depthwise convolution of uint8 and int8 in int32, with the channels last, and a scale in float32."""
    x = relax.Var("x", relax.TensorType((1, size, size, channels), "uint8"))
    w = relax.Var("w", relax.TensorType((window, window, 1, channels), "int8"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w]):
        with builder.dataflow():
            y = relax.op.nn.conv2d(
                x, w, stride, window // 2, groups=channels, data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32"
            )
            numbers = builder.emit(relax.op.astype(builder.emit(y), "float32"))
            result = builder.emit_output(relax.op.multiply(numbers, relax.const(0.01)))
        builder.emit_func_output(result)
    [(_, func)] = prim_funcs(lower(builder.get(), TARGET))
    return normal_form(func)


def depthwise_nchw(size: int, channels: int, window: int, stride: int) -> tvm.IRModule:
    """Return a depthwise convolution with the channels first."""
    x = te.placeholder((1, channels, size, size), name="x")
    w = te.placeholder((channels, 1, window, window), name="w")
    return function(x, w, topi.nn.group_conv2d_nchw(x, w, stride, window // 2, 1, channels))


def pool(*shape: int, window: int, stride: int, kind: str, layout: str, dtype: str = "float32") -> tvm.IRModule:
    x = te.placeholder(shape, dtype, name="x")
    padding = [window // 2] * 4
    return function(
        x, topi.nn.pool2d(x, [window, window], [stride, stride], [1, 1], padding, pool_type=kind, layout=layout)
    )


def global_average_nhwc(size: int, channels: int) -> tvm.IRModule:
    x = te.placeholder((2, size, size, channels), name="x")
    return function(x, topi.divide(topi.sum(x, axis=(1, 2)), float(size * size)))


def column_sum(rows: int, columns: int) -> tvm.IRModule:
    """Return the sum of the squares of each column."""
    x = te.placeholder((rows, columns), name="x")
    return function(x, topi.sum(topi.multiply(x, x), axis=0))


def winograd_image(height: int, width: int, channels: int, batch: int = 1) -> tvm.IRModule:
    """Return the transformation of an image for Winograd's convolution."""
    return _winograd(height, width, channels, batch)[0]


def winograd_result(height: int, width: int, channels: int, batch: int = 1) -> tvm.IRModule:
    """Return the transformation of the products into a result, with a bias and relu."""
    return _winograd(height, width, channels, batch)[1]


def _winograd(height: int, width: int, channels: int, batch: int) -> list[tvm.IRModule]:
    """Return what a convolution is lowered to, but for its product of matrices."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((batch, height, width, channels), "float32"))
    kernel = relax.const(np.zeros((3, 3, channels, channels), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            conv = relax.op.nn.conv2d(x, kernel, padding=1, data_layout="NHWC", kernel_layout="HWIO")
            biased = builder.emit(relax.op.add(builder.emit(conv), relax.const(np.ones(channels, "float32"))))
            out = builder.emit_output(relax.op.nn.relu(biased))
        builder.emit_func_output(out)
    funcs = {str(var.name_hint): func for var, func in prim_funcs(lower(use_winograd(builder.get()), TARGET))}
    return [normal_form(next(func for name, func in funcs.items() if part in name)) for part in ("image", "result")]

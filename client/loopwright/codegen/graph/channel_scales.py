"""Factors of the channels of an image before a convolution of 1 x 1, as of squeeze and excite (Hu et al. 2017).

TVM ends a function before a convolution: the image would be read from a distant cache, multiplied and written, and read
by the convolution again. As one function, a task multiplies the lines that it reads, while they are in a near cache.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import te, topi
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import CallRewriter, dtype_of, rewrite_calls, shape_of


def scale_in_place(mod: tvm.IRModule) -> tvm.IRModule:
    """Make one function of a factor for each channel and the convolution of 1 x 1 that alone reads the product.

    The channels are last, and there are fewer outputs than pixels: otherwise the weights take longer to read than the
    image.
    """
    return rewrite_calls(mod, _Scaled)


@mutator
class _Scaled(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        product = self.call_of(call.args[0], "multiply") if name == "nn.conv2d" else None
        if product is None or self.uses()[call.args[0]] > 1 or not _maps_pixels(call):
            return call
        shape = shape_of(product) or ()
        factors = (1, 1, 1, shape[-1])
        operands = sorted(product.args, key=lambda operand: shape_of(operand) == factors)
        if [shape_of(operand) for operand in operands] != [shape, factors]:
            return call
        return self.builder_.call_te(scaled, *operands, call.args[1], primfunc_name_hint="scaled_conv2d")


def scaled(image: te.Tensor, factors: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """Return the convolution of an image times factors: ``[n, y, x, c] * [1, 1, 1, c]`` and ``[1, 1, c, o]``."""
    product = topi.multiply(image, factors)
    y, x, c = (te.reduce_axis((0, extent), f"r{n}") for n, extent in enumerate(weight.shape[:3]))
    return te.compute(
        (*image.shape[:-1], weight.shape[-1]),
        lambda n, i, j, o: te.sum(product[n, i + y, j + x, c] * weight[y, x, c, o], axis=[y, x, c]),
        name="conv2d_nhwc",
    )


def _maps_pixels(call: tvm.ir.Call) -> bool:
    """Return whether a convolution of float32 with the channels last maps each of an image's many pixels to another."""
    attrs, image, result, weight = call.attrs, shape_of(call.args[0]), shape_of(call), shape_of(call.args[1])
    if image is None or result is None or weight is None or {dtype_of(call), dtype_of(call.args[0])} != {"float32"}:
        return False
    layouts = (str(attrs.data_layout), str(attrs.kernel_layout), str(attrs.out_layout))
    if layouts != ("NHWC", "HWIO", "NHWC") or weight[:3] != (1, 1, image[-1]):
        return False
    return image[:-1] == result[:-1] and image[1] * image[2] > result[-1]

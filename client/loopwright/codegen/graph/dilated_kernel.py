"""Transposed convolutions with a stride and a dilated kernel, without the zeros that TVM puts between the taps.

A product of such a zero and an infinite element of the input would be NaN. The input is spread instead, with zeros
between its elements, and read at the distances of the taps.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import te, tirx
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import CallRewriter, dtype_of, rewrite_calls, shape_of
from loopwright.codegen.graph.transposed_convolution import has_phases

_LAYOUTS = {
    "nn.conv1d_transpose": ("NCW", "IOW"),
    "nn.conv2d_transpose": ("NCHW", "IOHW"),
    "nn.conv3d_transpose": ("NCDHW", "IODHW"),
}


def spread_inputs(mod: tvm.IRModule) -> tvm.IRModule:
    """Make a function of each transposed convolution of known shapes whose kernel is dilated, but has no phases."""
    return rewrite_calls(mod, _Spread)


@mutator
class _Spread(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        attrs, extents = call.attrs, shape_of(call)
        if name not in _LAYOUTS or all(int(step) == 1 for step in attrs.dilation):
            return call
        if extents is None or has_phases(call) or (str(attrs.data_layout), str(attrs.kernel_layout)) != _LAYOUTS[name]:
            return call
        steps, strides, padding, groups = attrs.dilation, attrs.strides, attrs.padding, int(attrs.groups)
        dtype = dtype_of(call)

        def compute(data: te.Tensor, kernel: te.Tensor) -> te.Tensor:
            inputs, outputs = int(data.shape[1]) // groups, int(kernel.shape[1])
            reach = [int(step) * (int(size) - 1) for step, size in zip(steps, kernel.shape[2:], strict=True)]

            def element(n: Any, c: Any, *places: Any) -> Any:
                origins = [p - before + int(cut) for p, before, cut in zip(places, reach, padding, strict=False)]
                inside = [
                    tirx.all(origin >= 0, origin % int(stride) == 0, origin < extent * int(stride))
                    for origin, stride, extent in zip(origins, strides, data.shape[2:], strict=True)
                ]
                taken = data(n, c, *(origin // int(stride) for origin, stride in zip(origins, strides, strict=True)))
                return tirx.if_then_else(tirx.all(*inside), taken, tirx.const(0, data.dtype))

            spread = [extent + before for extent, before in zip(extents[2:], reach, strict=True)]
            image = te.compute((*data.shape[:2], *spread), element, name="spread")
            taps = [te.reduce_axis((0, size), f"r{number}") for number, size in enumerate(kernel.shape[2:])]
            c = te.reduce_axis((0, inputs), "rc")

            def term(n: Any, o: Any, *places: Any) -> Any:
                channel = o // outputs * inputs + c
                read = [
                    place + before - int(step) * tap
                    for place, before, step, tap in zip(places, reach, steps, taps, strict=True)
                ]
                product = image(n, channel, *read).astype(dtype) * kernel(channel, o % outputs, *taps).astype(dtype)
                return te.sum(product, axis=[c, *taps])

            return te.compute(tuple(extents), term, name="conv_transpose")

        return self.builder_.call_te(compute, *call.args, primfunc_name_hint=name.removeprefix("nn."))

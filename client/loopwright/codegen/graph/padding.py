"""Tensors padded with zeros before a convolution: the convolution pads them itself, and nothing is copied."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import CallRewriter, dtype_of, rewrite_calls

_CONVOLUTIONS = {f"nn.conv{rank}d": getattr(relax.op.nn, f"conv{rank}d") for rank in (1, 2, 3)}


def take_in_padding(mod: tvm.IRModule) -> tvm.IRModule:
    """Make zeros around the images of a convolution its own padding; models of TensorFlow have them on one side.

    Zeros around the batch or the channels are left.
    """
    return rewrite_calls(mod, _TakenIn)


@mutator
class _TakenIn(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        pad = self.call_of(call.args[0], "nn.pad") if name in _CONVOLUTIONS else None
        if pad is None or str(pad.attrs.pad_mode) != "constant" or float(pad.attrs.pad_value) != 0:
            return call
        attrs = call.attrs
        layout, own = str(attrs.data_layout), [int(each) for each in attrs.padding]
        widths = [int(each) for each in pad.attrs.pad_width]
        before, after = widths[::2], widths[1::2]
        if not layout.isalpha() or len(layout) != len(before) or min(widths) < 0:
            return call
        axes = [axis for axis, letter in enumerate(layout) if letter in "DHW"]
        if any(before[axis] or after[axis] for axis in range(len(layout)) if axis not in axes):
            return call
        added = [before[axis] for axis in axes] + [after[axis] for axis in axes]
        return _CONVOLUTIONS[name](
            pad.args[0],
            call.args[1],
            strides=attrs.strides,
            padding=[first + second for first, second in zip(own, added, strict=True)],
            dilation=attrs.dilation,
            groups=int(attrs.groups),
            data_layout=layout,
            kernel_layout=str(attrs.kernel_layout),
            out_layout=str(attrs.out_layout),
            out_dtype=dtype_of(call),
        )

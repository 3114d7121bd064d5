"""Windows of pools that reach beyond their tensor, cut to it.

A pool that rounds the extent of its result up has a tail of padding as long as its stride, in TVM's programs. Models
pool a whole image so, with a window of 1,280 over 7 elements: TVM's program then fills a tensor of gigabytes.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import CallRewriter, rewrite_calls, shape_of

_POOLS = {
    f"nn.{kind}_pool{rank}d": getattr(relax.op.nn, f"{kind}_pool{rank}d")
    for kind in ("avg", "max")
    for rank in (1, 2, 3)
}


def cut_windows(mod: tvm.IRModule) -> tvm.IRModule:
    """Round no extent of a pool up where that changes nothing: a window over all elements becomes as long as these."""
    return rewrite_calls(mod, _Cut)


@mutator
class _Cut(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        if name not in _POOLS or not call.attrs.ceil_mode:
            return call
        attrs, own, result = call.attrs, shape_of(call.args[0]), shape_of(call)
        layout = str(attrs.layout)
        if own is None or result is None or not layout.isalpha() or str(attrs.out_layout) != layout:
            return call
        axes = [axis for axis, letter in enumerate(layout) if letter in "DHW"]
        padding = [int(each) for each in attrs.padding]
        padded = [own[axis] + padding[n] + padding[len(axes) + n] for n, axis in enumerate(axes)]
        sizes, strides, dilations = (
            [int(each) for each in given] for given in (attrs.pool_size, attrs.strides, attrs.dilation)
        )
        for n, axis in enumerate(axes):
            if result[axis] == 1 and dilations[n] == 1:
                sizes[n], strides[n] = min(sizes[n], padded[n]), 1
        reach = [dilation * (size - 1) + 1 for size, dilation in zip(sizes, dilations, strict=True)]
        rounded_down = [(extent - of) // stride + 1 for extent, of, stride in zip(padded, reach, strides, strict=True)]
        if rounded_down != [result[axis] for axis in axes]:
            return call
        options = {"count_include_pad": attrs.count_include_pad} if name.startswith("nn.avg") else {}
        return _POOLS[name](call.args[0], sizes, strides, padding, dilations, ceil_mode=False, layout=layout, **options)

"""Softmax along an axis that is not the last one, with the axes behind it as one axis.

Vectors run along the last axis. A line of an image is shorter than the image, and often no whole number of vectors.
"""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import CallRewriter, dtype_of, reshaped, rewrite_calls, shape_of

_OPERATORS = {"nn.softmax": relax.op.nn.softmax, "nn.log_softmax": relax.op.nn.log_softmax}


def flatten_inner_axes(mod: tvm.IRModule) -> tvm.IRModule:
    """Return the module with one axis behind the one that a softmax, or its logarithm, is along."""
    return rewrite_calls(mod, _Flattened)


@mutator
class _Flattened(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        shape = shape_of(call) if name in _OPERATORS else None
        if not shape:
            return call
        axis = int(call.attrs.axis) % len(shape)
        if sum(extent > 1 for extent in shape[axis + 1 :]) < 2:
            return call
        parts = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
        cast = self.call_of(call.args[0], "astype")
        source = call.args[0] if cast is None else cast.args[0]
        data = self.emit(reshaped(source, parts))
        if cast is not None:  # which is in the function of the softmax only if nothing is between them
            data = self.emit(relax.op.astype(data, dtype_of(call)))
        return reshaped(self.emit(_OPERATORS[name](data, 1)), shape)

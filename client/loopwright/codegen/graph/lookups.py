"""Lookups by index, as embeddings do them, kept inside of the table."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import CallRewriter, rewrite_calls


def limit_lookups(mod: tvm.IRModule) -> tvm.IRModule:
    """Let an index outside of a table find the first or the last row, where TVM would read beside it, and warn of that.

    `loopwright.codegen.program.clamping` does so for the operators that have no such mode.
    """
    return rewrite_calls(mod, _Limited)


@mutator
class _Limited(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        if name != "take" or str(call.attrs.mode) != "fast":
            return call
        axis = None if call.attrs.axis is None else int(call.attrs.axis)
        return relax.op.take(*call.args, axis=axis, mode="clip")

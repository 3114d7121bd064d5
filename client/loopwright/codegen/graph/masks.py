"""Masks that hide nothing: constant zeros, which are added to scores before a softmax, are left out.

Classes of `transformers` make a mask for any model, also for one that attends to all it is given. Attention would copy
it in each call.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import CallRewriter, dtype_of, rewrite_calls, shape_of

_ALIKE = ("nn.softmax", "equal")
"""Operators to which -0 and 0, all that a sum with zeros may change, are the same: a check for rows that are masked
entirely compares the scores."""


def leave_out_zeros(mod: tvm.IRModule) -> tvm.IRModule:
    """Let softmax, and comparisons for equality, read scores without the constant zeros that are added to them."""
    return rewrite_calls(mod, _LeftOut)


@mutator
class _LeftOut(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        total = self.call_of(call.args[0], "add") if name in _ALIKE else None
        if total is None or "float" not in dtype_of(total):
            return call
        for scores, mask in (list(total.args), list(reversed(total.args))):
            zeros = self.value(mask)
            is_constant = isinstance(zeros, tvm.ir.GenericConst) and shape_of(scores) is not None
            if is_constant and shape_of(scores) == shape_of(total) and not zeros.value.numpy().any():
                return tvm.ir.Call(call.op, [scores, *call.args[1:]], call.attrs, call.ty_args)
        return call

"""Compiling the whole tiles of a loop apart from the partial one, in functions whose extents have 64 bits, too.

A schedule asks for it by a hint at the loop (`separate_partial_tiles` of `loopwright.codegen.rules.analysis.steps`).
TVM keeps the hint beside the loop, at the loop's variable. When it narrows indices to 32 bits, it gives the loop
another variable, and forgets the hint's: `LoopPartition` then finds no loop, and each tile tests each of its elements.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir.instrument import pass_instrument
from tvm.ir.transform import PassInfo

from loopwright.codegen.functions import prim_funcs

HINT = "pragma_loop_partition_hint"
_PARTITION = "s_tir.LoopPartition"


@pass_instrument
class KeptHints:
    """Moves hints to the variables of their loops, before TVM looks for them."""

    def run_before_pass(self, mod: tvm.IRModule, info: PassInfo) -> None:
        if info.name != _PARTITION:
            return
        for var, func in prim_funcs(mod):
            body = tvm_ffi.structural_map(func.body, (tirx.AttrStmt, _moved), order="post")
            if not body.same_as(func.body):
                mod.update_func(var, func.with_body(body))


def _moved(hint: tirx.AttrStmt) -> Any:
    if hint.attr_key != HINT or not isinstance(hint.body, tirx.For) or hint.body.loop_var.same_as(hint.node):
        return hint
    return tirx.AttrStmt(hint.body.loop_var, HINT, hint.value, hint.body, hint.span)

"""Weights that several programs of one model share, such as those of a decoder for one token and for prompts.

Each schedule that packs a weight may choose its own panels, so that two programs need two copies. In a module with this
attribute, schedules pack all weights in panels of one width (`tuner.space`), and programs can have the same tensors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import tvm
from tvm import relax

from loopwright.codegen.functions import prim_funcs, relax_funcs
from loopwright.codegen.graph.rewriting import replace_constants
from loopwright.codegen.weights.layout_free import weight_of

SHARED_WEIGHTS = "loopwright.shared_weights"
"""The attribute of a module, and of its functions that have a weight. It is a part of the workload."""


def share_weights(mod: tvm.IRModule) -> tvm.IRModule:
    """Return a module whose weights have one layout for all its programs, lowered or not."""
    marked = mod.with_attr(SHARED_WEIGHTS, True)
    for var, func in prim_funcs(mod):
        if weight_of(func) is not None:
            marked.update_func(var, func.with_attr(SHARED_WEIGHTS, True))
    return marked


def keep_sharing(mod: tvm.IRModule, lowered: tvm.IRModule) -> tvm.IRModule:
    """Return what a module was lowered to, whose functions name their weights, with the attribute if the module had
    it."""
    return share_weights(lowered) if mod.attrs and mod.attrs.get(SHARED_WEIGHTS) else lowered


def shares_weight(func: tvm.tirx.PrimFunc) -> bool:
    """Return whether the layout of a function's weight is that of all programs."""
    return bool(func.attrs) and bool(func.attrs.get(SHARED_WEIGHTS))


def with_one_copy(mods: Sequence[tvm.IRModule]) -> list[tvm.IRModule]:
    """Return modules in which equal constants of their Relax functions, of all modules together, are one tensor."""
    tensors: dict[Any, tvm.ir.GenericConst] = {}

    def first(constant: tvm.ir.GenericConst) -> tvm.ir.GenericConst:
        array = constant.value.numpy()
        return tensors.setdefault((str(array.dtype), array.shape, hashlib.sha256(array).digest()), constant)

    results = []
    for mod in mods:
        result = mod.clone()
        for var, func in relax_funcs(mod):
            result.update_func(var, replace_constants(mod, func, [(first(each), each) for each in _constants(func)]))
        results.append(result)
    return results


def _constants(func: relax.Function) -> list[tvm.ir.GenericConst]:
    found: list[tvm.ir.GenericConst] = []

    def visit(node: Any) -> None:
        if isinstance(node, tvm.ir.GenericConst) and isinstance(node.value, tvm.runtime.Tensor):
            found.append(node)

    relax.analysis.post_order_visit(func, visit)
    return found

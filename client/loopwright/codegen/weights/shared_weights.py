"""Weights that several programs of one model share, such as those of a decoder for one token and for prompts.

Each schedule that packs a weight may choose its own panels, so that two programs need two copies. In a module with this
attribute, schedules pack all weights in panels of one width (`tuner.space`), and programs can have the same tensors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm import relax

from loopwright.codegen.functions import prim_funcs
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


def weights_apart(
    mods: Sequence[tvm.IRModule], least_bytes: int = 0
) -> list[tuple[tvm.IRModule, list[tvm.runtime.Tensor]]]:
    """Return modules whose ``main`` takes its constants as parameters behind the others, and these tensors in order.

    Equal constants, of all modules together, are one tensor. Constants of fewer bytes than ``least_bytes`` stay.
    """
    tensors: dict[Any, tvm.runtime.Tensor] = {}

    def first(tensor: tvm.runtime.Tensor) -> tvm.runtime.Tensor:
        array = tensor.numpy()
        return tensors.setdefault((str(array.dtype), array.shape, hashlib.sha256(array).digest()), tensor)

    return [_apart(mod, first, least_bytes) for mod in mods]


def _apart(
    mod: tvm.IRModule, first: Callable[[tvm.runtime.Tensor], tvm.runtime.Tensor], least_bytes: int
) -> tuple[tvm.IRModule, list[tvm.runtime.Tensor]]:
    func = mod["main"]
    parameters: list[tuple[relax.Var, tvm.ir.GenericConst]] = []
    variables: dict[tvm.runtime.Tensor, relax.Var] = {}
    for constant in _constants(func):
        if constant.value.numel() * constant.value.dtype.itemsize < least_bytes:
            continue
        tensor = first(constant.value)
        variable = variables.setdefault(tensor, relax.Var(f"constant_{len(variables)}", constant.ty))
        parameters.append((variable, constant))
    replaced = replace_constants(mod, func, parameters)
    params = [*replaced.params, *variables.values()]
    result = mod.clone()
    main = relax.Function(params, replaced.body, replaced.ret_ty, replaced.is_pure, replaced.attrs)
    result.update_func(result.get_global_var("main"), main)
    return result, list(variables)


def _constants(func: relax.Function) -> list[tvm.ir.GenericConst]:
    found: list[tvm.ir.GenericConst] = []

    def visit(node: Any) -> None:
        if isinstance(node, tvm.ir.GenericConst) and isinstance(node.value, tvm.runtime.Tensor):
            found.append(node)

    relax.analysis.post_order_visit(func, visit)
    return found

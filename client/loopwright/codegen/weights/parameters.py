"""Taking a model's weights out of its module, and putting them back."""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import relax
from tvm.relax import transform
from tvm.runtime import Tensor

from loopwright.codegen.functions import relax_funcs
from loopwright.codegen.graph.detaching import prepare_weights
from loopwright.codegen.graph.packed import shift_counts
from loopwright.codegen.graph.rewriting import replace_constants
from loopwright.codegen.weights.layout_free import mark_inputs


def detach(mod: tvm.IRModule) -> tuple[tvm.IRModule, dict[str, Tensor]]:
    """Return the module with every constant tensor of its Relax functions as a parameter behind the others.

    What needs their values is done before (`loopwright.codegen.graph.detaching`). Scalars stay in the module: they are
    part of the program. A module without constants is returned as it is.

    Returns:
        The module, and the values by the names of their parameters.
    """
    if not any(_constants(func) for _, func in relax_funcs(mod)):
        return mod, {}
    mod = prepare_weights(mod)
    weights: dict[str, Tensor] = {}
    detached = mod.clone()
    for var, func in relax_funcs(mod):
        detached.update_func(var, _detached(mod, func, weights))
    return detached, weights


def attach(mod: tvm.IRModule, weights: dict[str, Tensor]) -> tvm.IRModule:
    """Return the module with values in place of parameters of these names, and what follows from them computed.

    Raises:
        ValueError: no Relax function has a parameter of that name.
    """
    if not weights:
        return mod
    left = set(weights)
    for var, func in relax_funcs(mod):
        names = {str(param.name) for param in func.params} & set(weights)
        left -= names
        if names:
            mod = transform.BindParams(str(var.name_hint), {name: weights[name] for name in names})(mod)
    if left:
        raise ValueError(f"no function of the module has a parameter {', '.join(sorted(left))}")
    return transform.DeadCodeElimination()(transform.FoldConstant()(mod))


def _detached(mod: tvm.IRModule, func: relax.Function, weights: dict[str, Tensor]) -> relax.Function:
    """Return the function with its constants as parameters, and add their values to ``weights``."""
    taken = {str(param.name) for param in func.params} | set(weights)
    parameters = []
    for constant in _constants(func):
        name = f"weight_{len(weights)}"
        while name in taken:
            name += "_"
        taken.add(name)
        weights[name] = constant.value
        parameters.append((relax.Var(name, constant.ty), constant))
    mutated = replace_constants(mod, func, parameters)
    params = [*mutated.params, *(var for var, _ in parameters)]
    replaced = relax.Function(params, mutated.body, mutated.ret_ty, mutated.is_pure, mutated.attrs)
    return mark_inputs(replaced, len(mutated.params))


def _is_weight(constant: tvm.ir.GenericConst) -> bool:
    shape = getattr(constant.value, "shape", None)
    return shape is not None and math.prod(int(extent) for extent in shape) > 1


def _constants(func: relax.Function) -> list[tvm.ir.GenericConst]:
    """Return the constant tensors of a Relax function, each once, in the order in which they are met."""
    constants: list[tvm.ir.GenericConst] = []
    counts = shift_counts(func)

    def visit(node: Any) -> None:
        is_weight = isinstance(node, tvm.ir.GenericConst) and _is_weight(node)
        if is_weight and not any(node.same_as(constant) for constant in (*constants, *counts)):
            constants.append(node)

    relax.analysis.post_order_visit(func, visit)
    return constants

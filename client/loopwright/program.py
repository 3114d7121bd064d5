"""A model as tuning sees it: a module whose weights are parameters, and the weights, which stay on this machine."""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import dataclass, field
from typing import Any

from loopwright import ir
from loopwright.folding import fold_normalisation


@dataclass(frozen=True, slots=True)
class Program:
    """``weights`` are ``tvm.runtime.Tensor`` values by the name of the Relax function's parameter that takes them."""

    module: Any
    weights: dict[str, Any] = field(default_factory=dict)


def detach(mod: Any) -> Program:
    """The module with every constant tensor of its Relax functions turned into a parameter behind the others.

    What can be computed from constants alone is computed before, on this machine: transposed weights, and
    normalisations of inference, which are folded into the convolutions before them.
    Scalars stay where they are: they are part of the program. A module without constants is returned as it is.
    """
    if not any(_constants(func) for _, func in ir.relax_funcs(mod)):
        return Program(mod)
    transform = importlib.import_module("tvm.relax.transform")
    for apply in (
        transform.DecomposeOpsForInference(),
        transform.CanonicalizeBindings(),
        transform.FoldConstant(),
        fold_normalisation,
        transform.FoldConstant(),
        transform.DeadCodeElimination(),
    ):
        mod = apply(mod)
    weights: dict[str, Any] = {}
    detached = mod.clone()
    for var, func in ir.relax_funcs(mod):
        detached.update_func(var, _detached(mod, func, weights))
    return Program(detached, weights)


def attach(mod: Any, weights: dict[str, Any]) -> Any:
    """The module with values in place of parameters of these names, and what follows from the values computed.

    Raises:
        ValueError: no Relax function has a parameter of that name.
    """
    if not weights:
        return mod
    transform = importlib.import_module("tvm.relax.transform")
    left = set(weights)
    for var, func in ir.relax_funcs(mod):
        names = {str(param.name) for param in func.params} & set(weights)
        left -= names
        if names:
            mod = transform.BindParams(str(var.name_hint), {name: weights[name] for name in names})(mod)
    if left:
        raise ValueError(f"no function of the module has a parameter {', '.join(sorted(left))}")
    return transform.DeadCodeElimination()(transform.FoldConstant()(mod))


def _detached(mod: Any, func: Any, weights: dict[str, Any]) -> Any:
    """The function with its constants as parameters; their values go to ``weights``."""
    relax = importlib.import_module("tvm.relax")
    taken = {str(param.name) for param in func.params} | set(weights)
    parameters = []
    for constant in _constants(func):
        name = f"weight_{len(weights)}"
        while name in taken:
            name += "_"
        taken.add(name)
        weights[name] = constant.value
        parameters.append((relax.Var(name, constant.ty), constant))
    mutated = _replacer()(mod, parameters).visit_expr(func)
    params = [*mutated.params, *(var for var, _ in parameters)]
    return relax.Function(params, mutated.body, mutated.ret_ty, mutated.is_pure, mutated.attrs)


def _is_weight(constant: Any) -> bool:
    shape = getattr(constant.value, "shape", None)
    return shape is not None and math.prod(int(extent) for extent in shape) > 1


def _constants(func: Any) -> list[Any]:
    """The constant tensors of a Relax function, each once, in the order in which they are met."""
    tvm = ir.require_tvm()
    found: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, tvm.ir.GenericConst) and _is_weight(node) and not any(node.same_as(o) for o in found):
            found.append(node)

    importlib.import_module("tvm.relax.analysis").post_order_visit(func, visit)
    return found


@functools.cache
def _replacer() -> Any:
    """A mutator class: TVM's base class is there only where TVM is."""
    functor = importlib.import_module("tvm.relax.expr_functor")

    @functor.mutator
    class Replace(functor.PyExprMutator):  # type: ignore[name-defined]
        def __init__(self, mod: Any, parameters: list[tuple[Any, Any]]) -> None:
            super().__init__(mod)
            self.parameters = parameters

        def visit_generic_const_(self, op: Any) -> Any:
            return next((var for var, constant in self.parameters if constant.same_as(op)), op)

    return Replace

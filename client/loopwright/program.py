"""A model as tuning sees it: a module whose weights are parameters, and the weights, which stay on this machine."""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import dataclass, field
from typing import Any

from loopwright import ir


@dataclass(frozen=True, slots=True)
class Program:
    """``weights`` are ``tvm.runtime.Tensor`` values by the name of ``main``'s parameter that takes them."""

    module: Any
    weights: dict[str, Any] = field(default_factory=dict)


def detach(mod: Any) -> Program:
    """The module with every constant tensor of ``main`` turned into a parameter behind the others.

    What can be computed from constants alone is computed before, on this machine: transposed weights, and
    normalisations of inference, which are folded into the convolutions before them.
    Scalars stay where they are: they are part of the program. A module without constants is returned as it is.
    """
    if not ir.has_relax(mod) or not _constants(mod):
        return Program(mod)
    transform = importlib.import_module("tvm.relax.transform")
    passes = [
        transform.DecomposeOpsForInference("main"),
        transform.CanonicalizeBindings(),
        transform.FoldConstant(),
        _fold_normalisation,
        transform.FoldConstant(),
        transform.DeadCodeElimination(),
    ]
    for apply in passes:
        mod = apply(mod)
    relax = importlib.import_module("tvm.relax")
    main = mod["main"]
    names = {str(param.name) for param in main.params}
    parameters = [
        (relax.Var(_free(f"weight_{number}", names), constant.ty), constant)
        for number, constant in enumerate(_constants(mod))
    ]
    mutated = _replacer()(mod, parameters).visit_expr(main)
    function = relax.Function(
        [*mutated.params, *(var for var, _ in parameters)],
        mutated.body,
        mutated.ret_ty,
        mutated.is_pure,
        mutated.attrs,
    )
    detached = mod.clone()
    detached.update_func(mod.get_global_var("main"), function)
    return Program(detached, {str(var.name): constant.value for var, constant in parameters})


def attach(mod: Any, weights: dict[str, Any]) -> Any:
    """The module with values in place of ``main``'s parameters of these names, and what follows from them computed."""
    if not weights:
        return mod
    transform = importlib.import_module("tvm.relax.transform")
    bound = transform.BindParams("main", weights)(mod)
    return transform.DeadCodeElimination()(transform.FoldConstant()(bound))


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _is_weight(constant: Any) -> bool:
    shape = getattr(constant.value, "shape", None)
    return shape is not None and math.prod(int(extent) for extent in shape) > 1


def _constants(mod: Any) -> list[Any]:
    """The constant tensors of ``main``, each once, in the order in which they are met."""
    tvm = ir.require_tvm()
    relax = importlib.import_module("tvm.relax")
    if "main" not in {str(var.name_hint) for var in mod.get_global_vars()}:
        return []
    found: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, tvm.ir.GenericConst) and _is_weight(node) and not any(node.same_as(o) for o in found):
            found.append(node)

    if isinstance(mod["main"], relax.Function):
        relax.analysis.post_order_visit(mod["main"], visit)
    return found


@functools.cache
def _replacer() -> Any:
    """A mutator class: TVM's base class is there only where TVM is."""
    functor = importlib.import_module("tvm.relax.expr_functor")

    @functor.mutator
    class Replace(functor.PyExprMutator):  # type: ignore[name-defined,misc]
        def __init__(self, mod: Any, parameters: list[tuple[Any, Any]]) -> None:
            super().__init__(mod)
            self.parameters = parameters

        def visit_generic_const_(self, op: Any) -> Any:
            return next((var for var, constant in self.parameters if constant.same_as(op)), op)

    return Replace


def _fold_normalisation(mod: Any) -> Any:
    """Multiply the scale of a normalisation into the weights of the convolution before it.

    ``(conv(x, w) [+ c] - mean) / deviation * gamma + beta`` becomes ``conv(x, w') + b'``, all of it constant but x.
    """
    tvm = ir.require_tvm()
    dpl = importlib.import_module("tvm.relax.dpl")
    relax = importlib.import_module("tvm.relax")
    data, weight, bias = dpl.wildcard(), dpl.is_const(), dpl.is_const()
    mean, deviation, gamma, beta = (dpl.is_const() for _ in range(4))
    convolution = dpl.is_op("relax.nn.conv2d")(data, weight)
    for biased in (True, False):
        start = dpl.is_op("relax.add")(convolution, bias) if biased else convolution
        centred = dpl.is_op("relax.subtract")(start, mean)
        scaled = dpl.is_op("relax.multiply")(dpl.is_op("relax.divide")(centred, deviation), gamma)
        pattern = dpl.is_op("relax.add")(scaled, beta)

        def rewrite(call: Any, found: Any, biased: bool = biased) -> Any:
            conv = found[convolution]
            values = {p: found[p].value.numpy() for p in (weight, mean, deviation, gamma, beta)}
            channels = values[weight].shape[0]
            if str(conv.attrs.kernel_layout) != "OIHW" or str(conv.attrs.out_layout) != "NCHW":
                return call
            if any(values[p].size != channels for p in (mean, deviation, gamma, beta)):
                return call
            factor = (values[gamma] / values[deviation]).reshape(channels)
            shift = values[beta].reshape(channels) - values[mean].reshape(channels) * factor
            if biased:
                added = found[bias].value.numpy()
                if added.size != channels:
                    return call
                shift = shift + added.reshape(channels) * factor
            dtype = values[weight].dtype
            scaled_weight = (values[weight] * factor.reshape(channels, 1, 1, 1)).astype(dtype)
            folded = tvm.ir.Call(conv.op, [conv.args[0], relax.const(scaled_weight)], conv.attrs, conv.ty_args)
            return relax.op.add(folded, relax.const(shift.reshape(1, channels, 1, 1).astype(dtype)))

        main = dpl.rewrite_call(pattern, rewrite, mod["main"])
        mod = mod.clone()
        mod.update_func(mod.get_global_var("main"), main)
    return mod

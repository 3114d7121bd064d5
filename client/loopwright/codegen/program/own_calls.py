"""Calls of a module's own PrimFuncs by its Relax functions, each with a function that has the extents of the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax
from tvm.ir import GlobalVar
from tvm.relax.expr_functor import PyExprMutator, mutator

from loopwright.codegen.errors import InvalidModule
from loopwright.codegen.extents import buffer_shape, with_extents
from loopwright.codegen.functions import prim_funcs, relax_funcs
from loopwright.codegen.graph.rewriting import op_name

Extents = tuple[tuple[str, int], ...]
"""Names of a PrimFunc's symbolic extents, in order, and the values that a call gives them."""


def bind_calls(mod: tvm.IRModule) -> tvm.IRModule:
    """Return the module whose calls of its own PrimFuncs refer to functions with the extents of the call.

    ``call_dps_packed`` with the name of a PrimFunc of the module becomes ``call_tir``. Other names are functions of
    libraries and stay. A PrimFunc with symbolic extents that is called with two shapes becomes two static functions.

    Raises:
        InvalidModule: a call gives one extent two values, or has more or fewer tensors than the function.
    """
    own = _Own(mod)
    uses = [use for _, func in relax_funcs(mod) for call in _calls(func) if (use := own.use(call)) is not None]
    if not any(use.is_named or use.extents for use in uses):
        return mod
    variants = list(dict.fromkeys((use.var, use.extents) for use in uses))
    binder = _Binder(mod.clone(), own, variants)
    for var, func in relax_funcs(mod):
        binder.builder_.update_func(var, binder.visit_expr(func))
    return binder.builder_.get()


Variant = tuple[GlobalVar, Extents]
"""A PrimFunc with values of its extents."""


@dataclass(frozen=True, slots=True)
class _Use:
    """``is_named``: the call names the function by a string."""

    var: GlobalVar
    extents: Extents
    is_named: bool


class _Own:
    """The PrimFuncs of a module, and which of them a call uses."""

    def __init__(self, mod: tvm.IRModule) -> None:
        self.functions = dict(prim_funcs(mod))
        symbols = {_symbol(func): var for var, func in self.functions.items()}
        self._by_name = symbols | {str(var.name_hint): var for var in self.functions}

    def use(self, call: tvm.ir.Call) -> _Use | None:
        """Return the PrimFunc that a call uses, with the extents that the call gives it if it is ``call_tir``."""
        name = op_name(call)
        if name == "call_dps_packed" and isinstance(call.args[0], relax.ExternFunc):
            var = self._by_name.get(str(call.args[0].global_symbol))
            return None if var is None else _Use(var, _extents(var, self.functions[var], call), True)
        for expr in (call.op, *call.args[:1]):
            if isinstance(expr, GlobalVar) and expr in self.functions:
                return _Use(expr, _extents(expr, self.functions[expr], call) if name == "call_tir" else (), False)
        return None


@mutator
class _Binder(PyExprMutator):
    """Adds variants to a module, and replaces calls of PrimFuncs by calls of them."""

    def __init__(self, mod: tvm.IRModule, own: _Own, variants: list[Variant]) -> None:
        self.own = own
        self.references = _add_variants(mod, own, variants)
        super().__init__(mod)

    def visit_call_(self, call: tvm.ir.Call) -> Any:
        use = self.own.use(call)  # before its operands are replaced by some without a type
        visited = super().visit_call_(call)
        if use is None or not (use.is_named or use.extents):
            return visited
        return relax.op.call_tir(self.references[use.var, use.extents], visited.args[1], list(call.ty_args))


def _add_variants(mod: tvm.IRModule, own: _Own, variants: list[Variant]) -> dict[Variant, GlobalVar]:
    """Add each variant to the module, in place of the function that it is of, and return the references to them.

    The only variant of a function takes its name; several are named after their extents.
    """
    references = {}
    for var, _ in variants:
        if (var, ()) not in variants and var in mod.functions:
            del mod[var]
    for var, extents in variants:
        name = str(var.name_hint)
        if [each for each, _ in variants].count(var) > 1:
            name += "".join(f"_{symbol}{value}" for symbol, value in extents)
        func = with_extents(own.functions[var], dict(extents))
        references[var, extents] = _add(mod, name, func) if extents else var
    return references


def _add(mod: tvm.IRModule, name: str, func: tvm.tirx.PrimFunc) -> GlobalVar:
    while name in {str(taken.name_hint) for taken in mod.functions}:
        name += "_"
    if _symbol(func) is not None:
        func = func.with_attr("global_symbol", name)
    reference = GlobalVar(name)
    relax.expr._update_type(reference, func.ty)
    mod[reference] = func
    return reference


def _symbol(func: tvm.tirx.PrimFunc) -> str | None:
    symbol = (func.attrs or {}).get("global_symbol")
    return None if symbol is None else str(symbol)


def _extents(var: GlobalVar, func: tvm.tirx.PrimFunc, call: tvm.ir.Call) -> Extents:
    results = call.ty.fields if isinstance(call.ty, relax.TupleType) else [call.ty]
    types = [*(argument.ty for argument in call.args[1].fields), *results]
    if len(types) != len(func.params):
        raise InvalidModule(
            f"a call of {var.name_hint} gives {len(types)} arguments and results, and the function has "
            f"{len(func.params)} parameters; let their numbers agree"
        )
    values: dict[str, int] = {}
    for param, ty in zip(func.params, types, strict=True):
        extents = getattr(getattr(ty, "shape", None), "values", None) or ()
        for extent, value in zip(buffer_shape(param), extents, strict=False):
            if not isinstance(extent, tvm.ir.Var) or not isinstance(value, tvm.tirx.IntImm):
                continue
            if values.setdefault(str(extent.name), int(value)) != int(value):
                raise InvalidModule(
                    f"a call of {var.name_hint} gives its extent {extent.name} the values "
                    f"{values[str(extent.name)]} and {int(value)}; let the shapes of its arguments and results agree"
                )
    return tuple(sorted(values.items()))


def _calls(func: relax.Function) -> list[tvm.ir.Call]:
    calls: list[tvm.ir.Call] = []
    relax.analysis.post_order_visit(func, lambda node: calls.append(node) if isinstance(node, tvm.ir.Call) else None)
    return calls

"""One module that chooses, at each call, among a function for any extent and functions for fixed ones.

The functions of the result are those of the module with the symbolic extent. Each compares the extent of its arguments
with those of its variants, in order. Where a variant takes smaller extents, too, the arguments are padded with copies
of their last sample, so that it meets no values that it would not meet otherwise, and the results are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax, te, tirx
from tvm.ir import GlobalVar, Var
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm_ffi import structural_equal

from loopwright.codegen.functions import relax_funcs
from loopwright.codegen.program.batching import BatchAxis, batch_axis

_ANY = "any"


@dataclass(frozen=True, slots=True)
class ShapeVariant:
    """A module with the value ``extent`` in place of the symbolic extent, for calls with ``smallest`` to ``extent``.

    If ``smallest`` is less than ``extent``, its functions are batch-like (`loopwright.codegen.program.batching`).
    """

    extent: int
    smallest: int
    module: tvm.IRModule


def dispatch(mod: tvm.IRModule, symbol: str, variants: Sequence[ShapeVariant]) -> tvm.IRModule:
    """Return a lowered Relax module whose functions call those of the first variant for their extent, or of ``mod``.

    Args:
        mod: the module with the symbolic extent, lowered.
        symbol: the name of the extent in the Relax functions.
        variants: lowered modules with the same Relax functions, scheduled or not.
    """
    if not variants:
        return mod
    builder = relax.BlockBuilder()
    whole = _added(builder, mod, _ANY)
    parts = [_added(builder, variant.module, f"{symbol}{variant.extent}") for variant in variants]
    for var, func in relax_funcs(mod):
        name = str(var.name_hint)
        own = relax.utils.copy_with_new_vars(func)
        extents = [each for each in relax.analysis.defined_symbolic_vars(own) if str(each.name) == symbol]
        chosen = whole[name].func
        if extents:
            body = _Chooser(builder, own, extents[0]).body(whole[name], variants, parts)
            chosen = relax.Function(own.params, body, own.ret_ty, own.is_pure, own.attrs)
        builder.add_func(chosen.with_attr("global_symbol", name), name)
    return relax.transform.DeadCodeElimination()(builder.get())


@dataclass(frozen=True, slots=True)
class Function:
    """A function of one of the modules: its name there, and what it is in the result."""

    name: str
    var: GlobalVar
    func: Any


def _added(builder: relax.BlockBuilder, mod: tvm.IRModule, suffix: str) -> dict[str, Function]:
    """Add the functions of a module, as private ones with a suffix to their names."""
    functions: dict[str, Function] = {}
    renamer = _Renamer(mod, {})
    in_order = sorted(mod.functions.items(), key=lambda pair: isinstance(pair[1], relax.Function))
    for var, func in in_order:  # PrimFuncs first, since Relax functions refer to them
        name = str(var.name_hint)
        if isinstance(func, relax.Function):
            func = renamer.visit_expr(func)
        if func.attrs and "global_symbol" in func.attrs:
            func = func.without_attr("global_symbol")
        functions[name] = Function(name, builder.add_func(func, f"{name}_{suffix}"), func)
        renamer.references[name] = functions[name].var
    return functions


@mutator
class _Renamer(PyExprMutator):
    """Replaces references to functions."""

    def __init__(self, mod: tvm.IRModule, references: dict[str, GlobalVar]) -> None:
        super().__init__(mod)
        self.references = references

    def visit_global_var_(self, op: GlobalVar) -> GlobalVar:
        return self.references.get(str(op.name_hint), op)


class _Chooser:
    """Makes the body of a function that takes and returns what ``func`` does."""

    def __init__(self, builder: relax.BlockBuilder, func: relax.Function, extent: Var) -> None:
        self._builder = builder
        self._func = func
        self._extent = extent

    def body(
        self, whole: Function, variants: Sequence[ShapeVariant], functions: Sequence[Mapping[str, Function]]
    ) -> relax.SeqExpr:
        """Return the choice among a variant's functions of the name that ``whole`` has, and ``whole``."""
        chosen = self._plain(whole)
        for variant, part in reversed(list(zip(variants, functions, strict=True))):
            chosen = self._choice(variant, part[whole.name], chosen)
        return chosen

    def _choice(self, variant: ShapeVariant, function: Function, otherwise: relax.SeqExpr) -> relax.SeqExpr:
        """Return the call of a variant where it is for the extent, else ``otherwise``."""
        extent = tirx.const(variant.extent, str(self._extent.ty))
        if variant.smallest < variant.extent:
            smallest = tirx.const(variant.smallest, str(self._extent.ty))
            is_within = tirx.And(self._extent >= smallest, self._extent < extent)
            otherwise = self._if(is_within, self._padded(function), otherwise)
        return self._if(self._extent == extent, self._cast(function), otherwise)

    def _if(self, condition: Any, then: relax.SeqExpr, otherwise: relax.SeqExpr) -> relax.SeqExpr:
        steps = _Steps()
        return steps.returning(steps.bind(relax.If(condition, then, otherwise), self._func.ret_ty))

    def _plain(self, function: Function) -> relax.SeqExpr:
        """Return the call of a function with the arguments as they are."""
        steps = _Steps()
        return steps.returning(steps.bind(relax.Call(function.var, list(self._func.params)), self._func.ret_ty))

    def _cast(self, function: Function) -> relax.SeqExpr:
        """Return the call of a variant with arguments of its own extent."""
        steps = _Steps()
        arguments = [
            steps.cast(param, own.ty) for param, own in zip(self._func.params, function.func.params, strict=True)
        ]
        result = steps.bind(relax.Call(function.var, arguments), function.func.ret_ty)
        return steps.returning(steps.cast(result, self._func.ret_ty))

    def _padded(self, function: Function) -> relax.SeqExpr:
        """Return the call of a variant with arguments that have fewer samples."""
        steps = _Steps()
        arguments = [
            self._resized(steps, param, param.ty, own.ty)
            for param, own in zip(self._func.params, function.func.params, strict=True)
        ]
        result = steps.bind(relax.Call(function.var, arguments), function.func.ret_ty)
        return steps.returning(self._cut(steps, result, self._func.ret_ty))

    def _cut(self, steps: _Steps, value: Var, wanted: Any) -> Var:
        """Return a result of a variant with the samples of the call only."""
        if not isinstance(wanted, relax.TupleType):
            return self._resized(steps, value, wanted, wanted)
        fields = [
            self._cut(steps, steps.bind(relax.TupleGetItem(value, index), own), field)
            for index, (own, field) in enumerate(zip(value.ty.fields, wanted.fields, strict=True))
        ]
        return steps.bind(relax.Tuple(fields), wanted)

    def _resized(self, steps: _Steps, value: Var, symbolic: Any, wanted: Any) -> Var:
        """Return a tensor with the samples of a type; itself if its symbolic type has no batch axis."""
        axis = batch_axis(symbolic.shape.values, self._extent)
        if axis is None:
            return value
        return steps.bind(self._builder.call_te(_copy(axis, list(wanted.shape.values)), value), wanted)


class _Steps:
    """Bindings, one after another."""

    def __init__(self) -> None:
        self._bindings: list[Any] = []

    def bind(self, value: Any, ty: Any) -> Var:
        var = relax.Var(f"step{len(self._bindings)}", ty)
        self._bindings.append(relax.VarBinding(var, value))
        return var

    def cast(self, value: Var, ty: Any) -> Var:
        if structural_equal(value.ty, ty):
            return value
        var = relax.Var(f"step{len(self._bindings)}", ty)
        self._bindings.append(relax.MatchCast(var, value, ty))
        return var

    def returning(self, result: Var) -> relax.SeqExpr:
        return relax.SeqExpr([relax.BindingBlock(self._bindings)], result)


def _copy(axis: BatchAxis, shape: list[Any]) -> Callable[[te.Tensor], te.Tensor]:
    """Return what copies a tensor to another number of samples: its last again and again, or its first only."""

    def copy(source: te.Tensor) -> te.Tensor:
        last = source.shape[axis.axis] // axis.per_sample - 1

        def element(*indices: Any) -> Any:
            index = indices[axis.axis]
            sample = te.min(index // axis.per_sample, last)
            own = sample * axis.per_sample + index % axis.per_sample
            return source[(*indices[: axis.axis], own, *indices[axis.axis + 1 :])]

        return te.compute(shape, element, name="copy")

    return copy

"""Shared by rewritings of Relax calls: a visitor that sees each call once, and questions about expressions."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from loopwright.codegen.functions import relax_funcs

ELEMENTWISE, OUTPUT_FUSABLE, OPAQUE = 0, 4, 8
"""Of ``relax::OpPatternKind``: fuses with what is before and after; takes in elementwise operations behind it; fuses
with nothing."""


class CallRewriter(PyExprMutator):
    """Replaces calls, in the order in which they are computed; subclasses say by what in `rewrite`."""

    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.uses: Callable[[], Counter[relax.Var]] = Counter
        """Returns how often each variable of the function as it was before is used. Counted when it is asked for."""
        self.name = ""
        """What variables are called that a call is computed from, if its own says where it comes from."""

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        self.name = source_name(binding.var)
        super().visit_var_binding_(binding)

    def visit_call_(self, call: tvm.ir.Call) -> Any:
        call = self.builder_.normalize(super().visit_call_(call))  # a call with new operands has no type yet
        name = op_name(call)
        return call if name is None else self._named(self.rewrite(name, call))

    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        """Return what takes the place of a call of the operator ``name``; the call itself if it stays."""
        raise NotImplementedError

    def value(self, expr: Any) -> Any:
        """Return the expression that a variable is bound to; other expressions, and parameters, as they are."""
        while isinstance(expr, relax.Var):
            bound = self.lookup_binding(expr)
            if bound is None:
                return expr
            expr = bound
        return expr

    def call_of(self, expr: Any, *names: str) -> tvm.ir.Call | None:
        """Return the call of one of these operators that an expression is; None if it is something else."""
        value = self.value(expr)
        return value if op_name(value) in names else None

    def emit(self, expr: Any, name: str = "") -> Any:
        """Bind an expression to a variable, unless it is one; to one of a name, if it is given."""
        return expr if isinstance(expr, relax.Var) else self.builder_.emit(self._named(expr), name or self.name)

    def _named(self, expr: Any) -> Any:
        """Return an expression whose parts are bound to variables, lest TVM do so and give them other names."""
        if not self.name or not isinstance(expr, tvm.ir.Call | relax.Tuple | relax.TupleGetItem):
            return expr
        if isinstance(expr, relax.TupleGetItem):
            return relax.TupleGetItem(self._operand(expr.tuple_value), expr.index)
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self._operand(field) for field in expr.fields])
        parts = [self._operand(operand) for operand in expr.args]
        return tvm.ir.Call(expr.op, parts, expr.attrs, expr.ty_args, expr.span, expr.ty)

    def _operand(self, expr: Any) -> Any:
        is_value = op_name(expr) is not None or isinstance(expr, relax.TupleGetItem)
        return self.emit(expr) if is_value else self._named(expr) if isinstance(expr, relax.Tuple) else expr


def rewrite_calls(mod: tvm.IRModule, rewriter: Callable[[tvm.IRModule], CallRewriter]) -> tvm.IRModule:
    """Return the module with every Relax function visited by a rewriter, and without what is then unused."""
    visitor = rewriter(mod)
    for var, func in relax_funcs(mod):
        visitor.uses = functools.cache(functools.partial(_uses, func))
        rewritten = visitor.visit_expr(func)
        visitor.builder_.update_func(var, rewritten)
    result = relax.transform.CanonicalizeBindings()(visitor.builder_.get())
    return relax.transform.DeadCodeElimination()(result)


def replace_constants(
    mod: tvm.IRModule, func: relax.Function, parameters: Sequence[tuple[relax.Expr, tvm.ir.GenericConst]]
) -> relax.Function:
    """Return a function with variables, which are not parameters yet, or calls on them, in place of constants."""
    return _Constants(mod, parameters).visit_expr(func)


@mutator
class _Constants(PyExprMutator):
    def __init__(self, mod: tvm.IRModule, parameters: Sequence[tuple[relax.Expr, tvm.ir.GenericConst]]) -> None:
        super().__init__(mod)
        self.parameters = parameters

    def visit_generic_const_(self, op: tvm.ir.GenericConst) -> relax.Expr:
        found = next((expr for expr, constant in self.parameters if constant.same_as(op)), op)
        return self.builder_.emit(found) if isinstance(found, tvm.ir.Call) else found


def source_name(var: relax.Var) -> str:
    """Return the name of a variable that says where it comes from (`loopwright.codegen.graph.sources`), without the
    number that TVM puts behind a name that it has given already; empty if the name is another."""
    name = _SOURCE.match(str(var.name))
    return name[0] if name else ""


_SOURCE = re.compile(r"v\d+_(?=\d*$)")


def op_name(expr: Any) -> str | None:
    """Return the name of a called operator without ``relax.``: ``add``, ``nn.relu``; None for anything else."""
    if isinstance(expr, tvm.ir.Call) and isinstance(expr.op, tvm.ir.Op):
        return str(expr.op.name).removeprefix("relax.")
    return None


def shape_of(expr: Any) -> tuple[int, ...] | None:
    """Return the shape of a tensor; None if it is not known, or symbolic."""
    shape = getattr(getattr(expr, "ty", None), "shape", None)
    values = getattr(shape, "values", None)
    if values is None or not all(isinstance(extent, tvm.tirx.IntImm) for extent in values):
        return None
    return tuple(int(extent) for extent in values)


def dtype_of(expr: Any) -> str:
    return str(expr.ty.dtype)


def scalar_of(expr: Any) -> float | None:
    """Return the value of a constant with one element and no axes; None for anything else."""
    if isinstance(expr, tvm.ir.GenericConst) and shape_of(expr) == ():
        return float(expr.value.numpy())
    return None


def is_single(expr: Any) -> bool:
    """Return whether a tensor has one element, and one axis or none."""
    return shape_of(expr) in ((), (1,))


def constant(value: Any) -> tvm.ir.GenericConst:
    """Return an array as a constant of its dtype; ``relax.const`` would narrow 64 bits to 32."""
    return relax.const(np.array(value, order="C"), str(value.dtype))


def permutation_of(call: tvm.ir.Call) -> tuple[int, ...]:
    """Return the axes of a call of ``permute_dims``."""
    rank = len(call.ty.shape.values)
    axes = call.attrs.axes
    return tuple(reversed(range(rank))) if axes is None else tuple(int(axis) % rank for axis in axes)


def reshaped(expr: Any, shape: Sequence[int]) -> Any:
    """Return a tensor of known shape under another shape; itself if that is its shape."""
    return expr if shape_of(expr) == tuple(shape) else relax.op.reshape(expr, list(shape))


def _uses(func: relax.Function) -> Counter[relax.Var]:
    uses: Counter[relax.Var] = Counter()

    def visit(node: Any) -> None:
        operands: list[Any] = []
        if isinstance(node, tvm.ir.Call):
            operands = list(node.args)
        elif isinstance(node, relax.Tuple):
            operands = list(node.fields)
        elif isinstance(node, relax.TupleGetItem):
            operands = [node.tuple_value]
        elif isinstance(node, relax.SeqExpr):
            operands = [node.body]
        uses.update(operand for operand in operands if isinstance(operand, relax.Var))

    relax.analysis.post_order_visit(func, visit)
    return uses

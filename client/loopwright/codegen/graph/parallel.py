"""Projections of one tensor by several constant matrices as one product: queries, keys and values of attention.

TVM's ``CombineParallelMatmul`` takes matrices that are variables only, and would concatenate them when the model runs.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.functions import relax_funcs
from loopwright.codegen.graph.rewriting import CallRewriter, constant, dtype_of, op_name, rewrite_calls, shape_of

_Users = dict[relax.Var, list[tuple[relax.Var, Any]]]

_AFTER_NUMBERS = ("add",)
_AFTER_INTEGERS = ("add", "astype", "multiply", "quantize", "subtract")
"""What follows a product and is computed for all columns at once."""


def combine_projections(mod: tvm.IRModule) -> tvm.IRModule:
    """Concatenate the constant matrices of projections of the same tensor, and what follows them, and split the result.

    Projections are products that are split into heads after a bias or, of integers, after scales, zero points and
    quantisation: attention reads those in place (`loopwright.codegen.graph.attention`). Others fuse better with what
    follows each of them.
    """
    return rewrite_calls(mod, _Combined)


@dataclass
class _Group:
    """Projections that become one: the variables of their results, and how many columns each has."""

    results: list[relax.Var]
    widths: list[int]
    values: dict[relax.Var, Any]
    """What variables of the function are bound to."""
    split: list[Any] = field(default_factory=list)
    """The parts of the combined result, once it is emitted; none if what follows the products differs."""
    is_emitted: bool = False


@mutator
class _Combined(CallRewriter):
    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.groups = [group for _, func in relax_funcs(mod) for group in _groups(func)]
        self.bound: relax.Var | None = None

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        self.bound = binding.var
        super().visit_var_binding_(binding)

    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        for group in self.groups:
            for place, result in enumerate(group.results):
                if result.same_as(self.bound):
                    return self._part(group, place, call)
        return call

    def _part(self, group: _Group, place: int, call: tvm.ir.Call) -> Any:
        if not group.is_emitted:
            group.is_emitted = True
            combined = self._joined(group, group.results)
            if combined is not None:
                ends = list(itertools.accumulate(group.widths))[:-1]
                parts = self.builder_.emit(relax.op.split(combined, ends, axis=-1))
                group.split = [self.emit(relax.TupleGetItem(parts, part)) for part in range(len(group.widths))]
        return group.split[place] if group.split else call

    def _joined(self, group: _Group, parts: Sequence[Any]) -> Any:
        """Return the parts of all projections, whose last axes are columns or of one element, as one; None if they
        are computed in different ways."""
        if all(isinstance(part, tvm.ir.GenericConst) for part in parts):
            return _concatenated([part.value.numpy() for part in parts], group.widths)
        values = [group.values.get(part, part) if isinstance(part, relax.Var) else part for part in parts]
        if all(part.same_as(parts[0]) for part in parts):
            shape = shape_of(parts[0])
            return self.visit_expr(parts[0]) if shape is not None and math.prod(shape) == 1 else None
        first, name = values[0], op_name(values[0])
        if name not in ("matmul", *_AFTER_INTEGERS) or len({(op_name(each), dtype_of(each)) for each in values}) > 1:
            return None
        operands = list(zip(*(_operands(value) for value in values), strict=True))
        if name == "quantize" and any(
            math.prod(shape_of(each) or ()) > 1 for operand in operands[1:] for each in operand
        ):
            return None
        rows = [self.visit_expr(first.args[0])] if name == "matmul" else []
        joined = [*rows, *(self._joined(group, operand) for operand in operands[len(rows) :])]
        if any(operand is None for operand in joined):
            return None
        # It comes from all of them, so that it has the name of none.
        if name == "quantize":
            return self.builder_.emit(relax.op.quantize(*joined, -1, dtype_of(first)))
        return self.builder_.emit(tvm.ir.Call(first.op, joined, first.attrs))


def _operands(call: tvm.ir.Call) -> list[Any]:
    """Return the operands of a call, of a sum or a product of elements constants last."""
    is_commutative = op_name(call) in ("add", "multiply")
    return sorted(call.args, key=lambda each: is_commutative and isinstance(each, tvm.ir.GenericConst))


def _concatenated(arrays: Sequence[np.ndarray[Any, Any]], widths: Sequence[int]) -> Any:
    """Return constants for all columns; None if their dtypes or other axes differ."""
    if len({(array.dtype, array.shape[:-1]) for array in arrays}) > 1:
        return None
    if all(array.size == 1 and array.item() == arrays[0].item() for array in arrays):
        return constant(arrays[0])
    if any(array.size == 1 for array in arrays):
        arrays = [
            np.repeat(array.reshape(-1), width) if array.size == 1 else array
            for array, width in zip(arrays, widths, strict=True)
        ]
    if any(array.shape[-1] != width for array, width in zip(arrays, widths, strict=True)):
        return None
    return constant(np.concatenate(arrays, axis=-1))


def _groups(func: relax.Function) -> list[_Group]:
    values: dict[relax.Var, Any] = {}
    users: _Users = defaultdict(list)
    for block in func.body.blocks if isinstance(func.body, relax.SeqExpr) else ():
        for binding in block.bindings:
            if isinstance(binding, relax.VarBinding):
                values[binding.var] = binding.value
                for operand in binding.value.args if isinstance(binding.value, tvm.ir.Call) else ():
                    if isinstance(operand, relax.Var):
                        users[operand].append((binding.var, binding.value))
    products: defaultdict[relax.Var, list[tuple[relax.Var, Any]]] = defaultdict(list)
    for var, value in values.items():
        if op_name(value) != "matmul" or not isinstance(value.args[0], relax.Var):
            continue
        if isinstance(value.args[1], tvm.ir.GenericConst) and len(shape_of(value.args[1]) or ()) == 2:
            result = _last(var, users)
            if result is not None:
                products[value.args[0]].append((result, value.args[1]))
    return [
        _Group([result for result, _ in members], [(shape_of(matrix) or ())[1] for _, matrix in members], values)
        for members in products.values()
        if len(members) > 1
    ]


def _last(product: relax.Var, users: _Users) -> relax.Var | None:
    """Return the last of what is computed for all columns at once; None if that is not split into heads."""
    end, quantised = product, None
    names = _AFTER_INTEGERS if dtype_of(product) == "int32" else _AFTER_NUMBERS
    while (after := _only_user(end, users, names)) is not None:
        end = after[0]
        quantised = end if op_name(after[1]) == "quantize" else quantised
    if not _is_split_into_heads(end, users):
        return None
    # A scale after the last quantisation is one of each projection, which attention multiplies its scores by.
    return end if quantised is None else quantised


def _only_user(var: relax.Var, users: _Users, names: Sequence[str]) -> tuple[relax.Var, Any] | None:
    """Return what is computed of a variable alone, and of nothing else as large, by one of these operators."""
    if len(users[var]) != 1 or op_name(users[var][0][1]) not in names:
        return None
    [(after, call)] = users[var]
    if shape_of(after) != shape_of(var) or not call.args[0].same_as(var):
        return None
    return after, call


def _is_split_into_heads(result: relax.Var, users: _Users) -> bool:
    width = (shape_of(result) or (0,))[-1]
    return bool(users[result]) and all(
        op_name(user) == "reshape" and width > (shape_of(user) or (width,))[-1] > 1 for _, user in users[result]
    )

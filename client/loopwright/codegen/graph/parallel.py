"""Projections of one tensor by several constant matrices as one product: queries, keys and values of attention.

TVM's ``CombineParallelMatmul`` takes matrices that are variables only, and would concatenate them when the model runs.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.functions import relax_funcs
from loopwright.codegen.graph.rewriting import CallRewriter, constant, dtype_of, op_name, rewrite_calls, shape_of


def combine_projections(mod: tvm.IRModule) -> tvm.IRModule:
    """Concatenate the constant matrices, and biases, of projections of the same tensor, and split the result.

    Projections are products, with or without a bias, that are split into heads: attention reads those in place
    (`loopwright.codegen.graph.attention`). Others fuse better with what follows each of them.
    """
    return rewrite_calls(mod, _Combined)


@dataclass
class _Group:
    """Projections that become one: the variables of their results, their matrices, and their biases, all or none."""

    results: list[relax.Var]
    matrices: list[Any]
    biases: list[Any]
    split: list[Any] = field(default_factory=list)
    """The parts of the combined result, once it is emitted."""


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
                    product = call if name == "matmul" else self.value(call.args[0])
                    return self._part(group, place, product)
        return call

    def _part(self, group: _Group, place: int, product: tvm.ir.Call) -> Any:
        if not group.split:
            matrix = np.concatenate([matrix.value.numpy() for matrix in group.matrices], axis=1)
            # It comes from all of them, so that it has the name of none.
            combined = self.builder_.emit(relax.op.matmul(product.args[0], constant(matrix), product.attrs.out_dtype))
            if group.biases:
                bias = np.concatenate([bias.value.numpy() for bias in group.biases])
                combined = self.builder_.emit(relax.op.add(combined, constant(bias)))
            widths = [(shape_of(matrix) or ())[1] for matrix in group.matrices]
            ends = list(itertools.accumulate(widths))[:-1]
            parts = self.builder_.emit(relax.op.split(combined, ends, axis=-1))
            group.split = [self.emit(relax.TupleGetItem(parts, part)) for part in range(len(widths))]
        return group.split[place]


def _groups(func: relax.Function) -> list[_Group]:
    values: list[tuple[relax.Var, Any]] = []
    users: defaultdict[relax.Var, list[tuple[relax.Var, Any]]] = defaultdict(list)

    def visit(node: Any) -> None:
        if isinstance(node, relax.VarBinding):
            values.append((node.var, node.value))
            for operand in node.value.args if isinstance(node.value, tvm.ir.Call) else ():
                if isinstance(operand, relax.Var):
                    users[operand].append((node.var, node.value))

    for block in func.body.blocks if isinstance(func.body, relax.SeqExpr) else ():
        for binding in block.bindings:
            visit(binding)
    products: defaultdict[relax.Var, list[tuple[relax.Var, Any, Any]]] = defaultdict(list)
    for var, value in values:
        if op_name(value) != "matmul" or not isinstance(value.args[0], relax.Var):
            continue
        if isinstance(value.args[1], tvm.ir.GenericConst) and len(shape_of(value.args[1]) or ()) == 2:
            result, bias = _biased(var, users)
            if _is_split_into_heads(result, users):
                products[value.args[0]].append((result, value.args[1], bias))
    groups = []
    for members in products.values():
        results, matrices, biases = (list(part) for part in zip(*members, strict=True))
        some = [bias is not None for bias in biases]
        same = len({(dtype_of(matrix), (shape_of(matrix) or ())[0]) for matrix in matrices}) == 1
        if len(members) > 1 and same and len(set(some)) == 1:
            groups.append(_Group(results, matrices, biases if all(some) else []))
    return groups


def _biased(product: relax.Var, users: dict[relax.Var, list[tuple[relax.Var, Any]]]) -> tuple[relax.Var, Any]:
    """Return the variable of a product with its bias, and the bias; the product and None if it has none."""
    if len(users[product]) == 1:
        [(var, user)] = users[product]
        is_bias = op_name(user) == "add" and isinstance(user.args[1], tvm.ir.GenericConst)
        if is_bias and shape_of(user.args[1]) == (shape_of(product) or ())[-1:]:
            return var, user.args[1]
    return product, None


def _is_split_into_heads(result: relax.Var, users: dict[relax.Var, list[tuple[relax.Var, Any]]]) -> bool:
    width = (shape_of(result) or (0,))[-1]
    return bool(users[result]) and all(
        op_name(user) == "reshape" and width > (shape_of(user) or (width,))[-1] > 1 for _, user in users[result]
    )

"""Products of matrices as models have them: of any type, batched, with a transposed weight, with what follows."""

from __future__ import annotations

import tvm
from tvm import te, topi

from tests.support.rule_programs import function


def product(
    rows: int,
    columns: int,
    depth: int,
    *,
    dtype: str = "float32",
    sums: str = "float32",
    transposed: bool = True,
    batches: tuple[int, ...] = (),
    epilogue: bool = False,
) -> tvm.IRModule:
    """Return the product of ``[rows, depth]`` and a matrix, with bias, tanh and a residual if there is an epilogue."""
    a = te.placeholder((*batches, rows, depth), dtype, name="A")
    b = te.placeholder((*batches, columns, depth) if transposed else (*batches, depth, columns), dtype, name="B")
    k = te.reduce_axis((0, depth), "k")

    def element(*indices: tvm.tirx.Var) -> tvm.tirx.PrimExpr:
        *batch, i, j = indices
        left, right = a[(*batch, i, k)], b[(*batch, j, k) if transposed else (*batch, k, j)]
        if dtype != sums:
            left, right = left.astype(sums), right.astype(sums)
        return te.sum(left * right, axis=k)

    c = te.compute((*batches, rows, columns), element, name="C")
    if not epilogue:
        return function(a, b, c)
    bias, residual = te.placeholder((columns,), sums, name="bias"), te.placeholder(c.shape, sums, name="residual")
    return function(a, b, bias, residual, topi.add(topi.tanh(topi.add(c, bias)), residual))

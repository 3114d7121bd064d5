"""The product that both arms tune, and how their results are timed."""

from __future__ import annotations

import tvm
from tvm import te

SIZE = 128
TRIALS = 128


def product() -> tvm.tirx.PrimFunc:
    """C[i, j] = sum over k of A[i, k] * B[k, j], fp32 [128, 128] each."""
    a = te.placeholder((SIZE, SIZE), "float32", name="A")
    b = te.placeholder((SIZE, SIZE), "float32", name="B")
    k = te.reduce_axis((0, SIZE), name="k")
    c = te.compute((SIZE, SIZE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_prim_func([a, b, c])

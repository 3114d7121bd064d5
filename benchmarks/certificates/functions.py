"""What is certified, and when: twelve tiny functions and eighteen larger ones, most of TVM's benchmark set."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import tvm
from tvm import te

from benchmarks.search.workloads import product, suite

SITTINGS = {"first": 0, "again": 0, "under load": 4}
"""Processes beside the races of each."""


def addition(elements: int) -> tvm.tirx.PrimFunc:
    a, b = (te.placeholder((elements,), "float32", name=name) for name in "AB")
    return te.create_prim_func([a, b, te.compute((elements,), lambda i: a[i] + b[i], name="C")])


def row_sums(rows: int, columns: int) -> tvm.tirx.PrimFunc:
    a = te.placeholder((rows, columns), "float32", name="A")
    k = te.reduce_axis((0, columns), name="k")
    return te.create_prim_func([a, te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="B")])


def sigmoid(elements: int) -> tvm.tirx.PrimFunc:
    a = te.placeholder((elements,), "float32", name="A")
    return te.create_prim_func([a, te.compute((elements,), lambda i: te.sigmoid(a[i]), name="B")])


FUNCTIONS: dict[str, Callable[[], tvm.tirx.PrimFunc]] = {
    **{f"addition of {n:,}": partial(addition, n) for n in (16, 512, 8192)},
    **{f"sums of {m} x {n}": partial(row_sums, m, n) for m, n in ((4, 64), (32, 256), (64, 1024))},
    **{f"sigmoid of {n:,}": partial(sigmoid, n) for n in (64, 4096)},
    **{
        f"product {m} x {n} x {k}": partial(product, m, n, k)
        for m, n, k in ((4, 4, 4), (16, 16, 16), (1, 256, 256), (32, 32, 64), (509, 251, 127))
    },
    **{
        f"{name}-{index}": suite(name, index)
        for name, index in (
            *(("C1D", 0), ("C1D", 1), ("C1D", 2), ("C2D", 1), ("C2D", 2), ("GMM", 0), ("GMM", 1), ("GRP", 0)),
            *(("GRP", 1), ("DEP", 1), ("DEP", 2), ("CAP", 1), ("NRM", 0), ("NRM", 1), ("SFM", 0), ("SFM", 1)),
            ("TBG", 0),
        )
    },
}

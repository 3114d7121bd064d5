"""What is tuned: shapes of TVM's own benchmark set, two products, and a shape of primes."""

from __future__ import annotations

from collections.abc import Callable

import tvm
from tvm import te
from tvm.s_tir.meta_schedule.testing import te_workload


def product(m: int, n: int, k: int) -> tvm.tirx.PrimFunc:
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")])


def suite(name: str, index: int) -> Callable[[], tvm.tirx.PrimFunc]:
    return lambda: te_workload.create_te_workload(name, index)


WORKLOADS: dict[str, Callable[[], tvm.tirx.PrimFunc]] = {
    "GMM-128": suite("GMM", 0),
    "C1D-1": suite("C1D", 1),
    "C2D-1": suite("C2D", 1),
    "DEP-1": suite("DEP", 1),
    "GRP-1": suite("GRP", 1),
    "T2D-1": suite("T2D", 1),
    "NRM-1": suite("NRM", 1),
    "SFM-1": suite("SFM", 1),
    "MM-512": lambda: product(512, 512, 512),
    "MM-1024": lambda: product(1024, 1024, 1024),
    "MM-prime": lambda: product(509, 251, 127),
}

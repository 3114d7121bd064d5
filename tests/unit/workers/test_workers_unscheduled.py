"""References on all threads: the same bits, and the loops that may not run in parallel left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, topi
from tvm.script import tirx as T

from workers.device.unscheduled import on_all_threads


def product(rows: int, columns: int) -> tvm.IRModule:
    a, b = te.placeholder((rows, 24), "float16", name="a"), te.placeholder((24, columns), "float16", name="b")
    k = te.reduce_axis((0, 24), "k")
    c = te.compute(
        (rows, columns), lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), k), name="c"
    )
    return tvm.IRModule({"main": te.create_prim_func([a, b, topi.nn.relu(c)])})


def softmax(rows: int, columns: int) -> tvm.IRModule:
    a = te.placeholder((rows, columns), "float32", name="a")
    return tvm.IRModule({"main": te.create_prim_func([a, topi.nn.softmax(a)])})


def convolution() -> tvm.IRModule:
    data, weight = te.placeholder((1, 3, 9, 9), name="data"), te.placeholder((4, 3, 3, 3), name="weight")
    return tvm.IRModule({"main": te.create_prim_func([data, weight, topi.nn.conv2d(data, weight, 1, 1, 1)])})


def total() -> tvm.IRModule:
    a = te.placeholder((7, 31), "float32", name="a")
    return tvm.IRModule({"main": te.create_prim_func([a, topi.sum(a)])})


@T.prim_func(s_tir=True)
def running_sum(a: T.Buffer((40,), "float32"), b: T.Buffer((40,), "float32")) -> None:  # type: ignore[valid-type]
    for i in range(40):
        with T.sblock("sum"):
            at = T.axis.opaque(40, i)
            b[at] = a[at] + T.if_then_else(at > 0, b[T.max(at - 1, 0)], T.float32(0))


@T.prim_func(s_tir=True)
def without_loops(a: T.Buffer((), "float32"), b: T.Buffer((), "float32")) -> None:  # type: ignore[valid-type]
    with T.sblock("copy"):
        b[()] = a[()] * T.float32(2)


def module(func: tvm.tirx.PrimFunc) -> tvm.IRModule:
    return tvm.IRModule({"main": func.with_attr("global_symbol", "main")})


MODULES: dict[str, tvm.IRModule] = {
    "product": product(40, 50),
    "one row": product(1, 50),
    "one element": product(1, 1),
    "softmax": softmax(6, 33),
    "convolution": convolution(),
    "total": total(),
    "running sum": module(running_sum),
    "without loops": module(without_loops),
}


def results(mod: tvm.IRModule) -> list[Any]:
    draw = np.random.default_rng(0)
    arguments = [
        tvm.runtime.tensor(np.asarray(draw.standard_normal([int(n) for n in param.shape])).astype(str(param.dtype)))
        for param in mod["main"].params
    ]
    tvm.compile(mod, target="llvm")(*arguments)
    return [argument.numpy() for argument in arguments]


@pytest.mark.parametrize("name", MODULES)
def test_results_are_the_same_to_the_last_bit(name: str) -> None:
    parallel = on_all_threads(MODULES[name])
    for result, expected in zip(results(parallel), results(MODULES[name]), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("name", "loops"),
    [
        ("product", 2),
        ("one row", 2),
        ("one element", 0),
        ("softmax", 4),
        ("convolution", 2),
        ("total", 0),
        ("running sum", 0),
        ("without loops", 0),
    ],
)
def test_loops_over_elements_run_in_parallel(name: str, loops: int) -> None:
    assert on_all_threads(MODULES[name]).script().count("T.parallel(") == loops

"""Which values arguments may have in a test: what is an index, a divisor, or compared in an order that may change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax, te, tirx, topi

from loopwright.codegen.arrays import DRAWS, compare, random_array, tolerance
from loopwright.codegen.kinds import Values
from loopwright.codegen.machine.this_cpu import this_cpu
from loopwright.codegen.program.argument_values import argument_values
from tests.support.rule_programs import lowered, recurrent
from tuner.workload import make_workload

ANY, NUMBER, INDEX, NONZERO, SMALL = Values
X, Y = te.placeholder((4, 8), name="X"), te.placeholder((4, 8), name="Y")
N, M = te.placeholder((4, 8), "int32", name="N"), te.placeholder((4, 8), "int32", name="M")
WIDE, PLACES = te.placeholder((4,), "int64", name="WIDE"), te.placeholder((4,), "int32", name="PLACES")


def values(*tensors: Any) -> tuple[Values, ...]:
    return argument_values(te.create_prim_func(list(tensors)))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: (X, Y, topi.add(X, Y)), (ANY, ANY, ANY)),
        (lambda: (X, topi.maximum(X, 0.0)), (ANY, ANY)),
        (lambda: (X, topi.max(X, axis=1)), (NUMBER, NUMBER)),
        (lambda: (X, topi.argmax(X, axis=1)), (NUMBER, ANY)),
        (lambda: (X, Y, topi.add(topi.nn.softmax(X), Y)), (ANY, ANY, ANY)),
        (lambda: (X, topi.nn.log_softmax(X)), (ANY, ANY)),
        (lambda: (X, topi.exp(topi.subtract(X, topi.max(X, axis=1, keepdims=True)))), (NUMBER, NUMBER)),
        (lambda: (X, topi.sum(X, axis=1)), (ANY, ANY)),
        (lambda: (N, topi.max(N, axis=1)), (ANY, ANY)),
        (lambda: (N, M, topi.floor_divide(N, M)), (ANY, NONZERO, ANY)),
        (lambda: (N, M, topi.floor_mod(N, topi.add(M, M))), (ANY, NONZERO, ANY)),
        (lambda: (X, Y, topi.divide(X, Y)), (ANY, ANY, ANY)),
        (lambda: (X, PLACES, topi.take(X, PLACES, axis=0)), (ANY, INDEX, ANY)),
        (lambda: (X, WIDE, topi.take(X, topi.cast(WIDE, "int32"), axis=0)), (ANY, INDEX, ANY)),
        (lambda: (N, M, topi.add(N, M)), (ANY, ANY, ANY)),
    ],
    ids=[
        *("sum", "relu", "greatest", "its place", "softmax", "its logarithm", "its numerator", "sum of a row"),
        *("greatest integer", "quotient"),
        *("remainder of a sum", "quotient of floats", "gather", "gather, cast", "sum of integers"),
    ],
)
def test_values_follow_from_what_becomes_of_elements(made: Callable[[], Any], expected: tuple[Values, ...]) -> None:
    assert values(*made()) == expected


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_a_reduction_that_keeps_nan_gets_it(name: str) -> None:
    assert argument_values(lowered(lambda x: getattr(relax.op, name)(x, 1), (4, 8))["main"]) == (ANY, ANY)


def test_attention_gets_nan() -> None:
    """Its sums may be limited from below, for rows that are masked entirely; of NaN they are quotients of NaN."""

    def attention(scores: te.Tensor, limits: str) -> te.Tensor:
        k, j, m = (te.reduce_axis((0, 8), name) for name in "kjm")
        largest = te.compute((4,), lambda i: te.max(scores[i, m], axis=m), name="largest")
        powers = te.compute((4, 8), lambda i, c: te.exp(scores[i, c] - largest[i]), name="powers")
        total = te.compute((4,), lambda i: te.sum(powers[i, k], axis=k), name="total")
        values = te.compute((4, 8), lambda i, c: te.sum(powers[i, j] * Y[j % 4, c], axis=j), name="values")
        least = tirx.const(1e-30, "float32")
        if limits == "the denominator":
            return te.compute((4, 8), lambda i, c: values[i, c] / tirx.max(total[i], least), name="result")
        return te.compute((4, 8), lambda i, c: tirx.max(values[i, c] / total[i], least), name="result")

    assert values(X, Y, attention(X, "the denominator")) == (ANY, ANY, ANY)
    assert values(X, Y, attention(X, "the result")) == (NUMBER, NUMBER, NUMBER)


def test_a_divisor_that_a_condition_chooses_may_be_zero() -> None:
    safe = te.compute((4, 8), lambda i, j: tirx.Select(M[i, j] == 0, tirx.const(1, "int32"), M[i, j]), name="safe")
    assert values(N, M, topi.floor_divide(N, safe)) == (ANY, ANY, ANY)


GATHER = """
@T.prim_func(s_tir=True)
def main(places: T.Buffer((8,), "int32"), x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
    for i in range(8):
        place: T.int32 = places[i] + 1
        y[i] = x[place % 8]
"""


def test_elements_are_followed_through_variables() -> None:
    assert argument_values(tvm.script.from_source(GATHER)) == (INDEX, ANY, ANY)


@pytest.mark.parametrize("resets_state", [False, True])
def test_the_matrix_of_a_recurrent_layer_is_small(resets_state: bool) -> None:
    assert argument_values(recurrent("gru", 1, 20, resets_state=resets_state)["main"]) == (ANY, SMALL, *[ANY] * 4)
    assert argument_values(recurrent("lstm", 2, 20)["main"]) == (ANY, SMALL, *[ANY] * 6)


@pytest.mark.parametrize(("cell", "hidden"), [("gru", 72), ("lstm", 104)])
def test_rounding_does_not_decide_what_long_recurrent_layers_return(cell: str, hidden: int) -> None:
    """A state that differs in its last digits is as one that another program has rounded: the layer forgets it."""
    module = recurrent(cell, 1, hidden, steps=40)
    program = tvm.compile(module, this_cpu())
    infos = make_workload(module["main"], "main").args
    for draw in DRAWS:
        inputs = [random_array(info, draw, np.random.default_rng(1), 1) for info in infos]
        results = []
        for initial in (inputs[3], np.multiply(inputs[3], np.float32(1 + 1e-6))):
            arguments = [tvm.runtime.tensor(array) for array in [*inputs[:3], initial, *inputs[4:]]]
            program(*arguments)
            results.append([array.numpy() for array in arguments])
        assert all(compare(one, other, tolerance("float32")).close for one, other in zip(*results, strict=True))

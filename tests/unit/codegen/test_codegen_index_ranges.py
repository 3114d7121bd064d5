"""What is said to lie in a range does, for all values of the names."""

from __future__ import annotations

import itertools
import random

import pytest
from tvm.ir import Expr, Var, prim

from loopwright.codegen.program.index_ranges import Ranges

B, T = Var("b", "int32"), Var("t", "int32")


@pytest.mark.parametrize(("rows", "proven"), [(37, True), (36, False)])
def test_a_condition_on_what_is_divided_limits_the_quotient(rows: int, proven: bool) -> None:
    """Threads of 19 blocks write 37 rows of 64, and the last half of a block writes none."""
    ranges = Ranges()
    ranges.name(B, 0, 19)
    ranges.name(T, 0, 128)
    assert not ranges.never(B * 128 + T < 2368)
    assert ranges.is_within(B * 2 + prim.FloorDiv(T, 64), 0, rows - 1) == proven
    assert ranges.is_within(prim.FloorDiv(B * 128 + T, 64), 0, rows - 1) == proven


def test_the_lesser_of_two_is_known_by_their_difference() -> None:
    ranges = Ranges()
    ranges.name(B, 0, 19)
    ranges.name(T, 0, 4)
    assert ranges.is_within(B * 8 - prim.Min(B * 8, B * 8 + T), 0, 0)


def test_what_is_proven_is_true() -> None:
    seed = random.randrange(2**32)
    draw = random.Random(seed)
    proven = 0
    for _ in range(2000):
        extents = draw.randrange(1, 8), draw.randrange(1, 12)
        index = _drawn(draw, 3)
        condition = _drawn(draw, 2) < draw.randrange(-4, 40)
        ranges = Ranges()
        ranges.name(B, 0, extents[0])
        ranges.name(T, 0, extents[1])
        least, most = sorted(draw.choices(range(-20, 60), k=2))
        values = [_value(index, b, t) for b, t in itertools.product(*map(range, extents)) if _value(condition, b, t)]
        if ranges.never(condition):
            assert not values, f"seed {seed}"
        elif ranges.is_within(index, least, most):
            proven += 1
            assert all(least <= value <= most for value in values), f"seed {seed}: {index} if {condition}, {extents}"
    assert proven > 100


def _drawn(draw: random.Random, depth: int) -> Expr:
    if depth == 0 or draw.random() < 0.2:
        return draw.choice([B, T, prim.IntImm("int32", draw.randrange(-5, 9))])
    match draw.randrange(6):
        case 0:
            return prim.Add(_drawn(draw, depth - 1), _drawn(draw, depth - 1))
        case 1:
            return prim.Sub(_drawn(draw, depth - 1), _drawn(draw, depth - 1))
        case 2:
            return prim.Mul(_drawn(draw, depth - 1), prim.IntImm("int32", draw.randrange(-3, 9)))
        case 3:
            return prim.FloorDiv(_drawn(draw, depth - 1), prim.IntImm("int32", draw.randrange(1, 9)))
        case 4:
            return draw.choice([prim.Min, prim.Max])(_drawn(draw, depth - 1), _drawn(draw, depth - 1))
    return prim.FloorMod(_drawn(draw, depth - 1), prim.IntImm("int32", draw.randrange(1, 9)))


def _value(expr: Expr, b: int, t: int) -> int:
    if isinstance(expr, prim.IntImm):
        return int(expr)
    if isinstance(expr, Var):
        return b if expr.same_as(B) else t
    x, y = _value(expr.a, b, t), _value(expr.b, b, t)
    match expr:
        case prim.Add():
            return x + y
        case prim.Sub():
            return x - y
        case prim.Mul():
            return x * y
        case prim.FloorDiv():
            return x // y
        case prim.FloorMod():
            return x % y
        case prim.Min():
            return min(x, y)
        case prim.Max():
            return max(x, y)
    return int(x < y)

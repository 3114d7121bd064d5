"""Buckets of a symbolic extent: padding against tuning."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from loopwright import plan_shapes


def extents_of(shapes: Any, **options: Any) -> list[int]:
    return [bucket.extent for bucket in plan_shapes(shapes, **options).buckets]


def time_of(weights: dict[int, float], buckets: Sequence[int]) -> float:
    return sum(weight * min(b for b in buckets if b >= extent) for extent, weight in weights.items())


def test_a_range_is_cut_into_buckets_that_each_save_their_price() -> None:
    plan = plan_shapes({"n": range(1, 257)})
    assert [bucket.extent for bucket in plan.buckets] == [36, 72, 108, 145, 182, 219, 256]
    assert [bucket.smallest for bucket in plan.buckets] == [1, 37, 73, 109, 146, 183, 220]
    assert plan.shapes[0] == {"n": 36}
    assert plan.calls == pytest.approx(1)
    assert plan.padding == pytest.approx(0.138, abs=0.001)
    assert plan.padding_of_one == pytest.approx(256 / 128.5 - 1)


@pytest.mark.parametrize("price", [0.0, 0.02, 0.3])
def test_no_other_buckets_cost_less(price: float) -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        weights = {int(n): float(generator.integers(1, 9)) for n in generator.choice(40, 7, replace=False) + 1}
        paid = price * sum(extent * weight for extent, weight in weights.items())
        costs = [
            time_of(weights, [*others, max(weights)]) + paid * (count + 1)
            for count in range(4)
            for others in itertools.combinations(sorted(weights)[:-1], count)
        ]
        chosen = extents_of({"n": weights}, max_buckets=4, bucket_price=price)
        assert time_of(weights, chosen) + paid * len(chosen) == pytest.approx(min(costs))


def test_what_hardly_ever_occurs_shares_the_next_larger_bucket() -> None:
    assert extents_of({"n": {1: 900, 16: 50, 128: 50}}) == [1, 16, 128]
    assert extents_of({"n": {1: 900, 127: 1, 128: 50}}) == [1, 128]


def test_without_padding_the_extents_that_take_most_of_the_time_are_tuned() -> None:
    plan = plan_shapes({"n": {1: 10, 64: 100, 65: 1, 128: 50}}, not_padded="softmax combines samples")
    assert [(bucket.smallest, bucket.extent) for bucket in plan.buckets] == [(64, 64), (128, 128)]
    assert plan.padding == 0
    assert plan.calls == pytest.approx(150 / 161)
    assert "softmax combines samples" in str(plan)
    assert extents_of({"n": range(1, 257)}, not_padded="softmax") == [256]


def test_other_extents_have_one_value() -> None:
    assert plan_shapes({"n": range(8, 9), "m": np.int64(3)}).shapes == [{"m": 3, "n": 8}]


@pytest.mark.parametrize(
    ("shapes", "told"),
    [
        ({"n": range(1, 9), "m": range(1, 9)}, "ranges of 'n', 'm'.*a list"),
        ({"n": 4}, "ranges of no extent"),
        ({"n": range(0, 9)}, "the extent 0"),
        ({"n": {4: -1}}, "n=4 the weight -1"),
        ({"n": {4: float("nan")}}, "n=4 the weight nan"),
        ({"n": range(4, 4)}, "no extent that occurs"),
        ({"n": {4: 0}}, "no extent that occurs"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_what_to_do(shapes: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        plan_shapes(shapes)


def test_a_plan_shows_its_buckets_and_what_they_cost() -> None:
    plan = plan_shapes({"n": range(1, 257)}, max_buckets=2)
    console = Console(width=120, record=True)
    console.print(plan)
    shown = console.export_text()
    assert "128     1 to 128  50.0%         98.4%" in shown
    assert "padding adds 49.4% to the work; it would add 99.2% with one bucket" in shown
    assert "<td style='text-align:right'>129 to 256</td>" in plan._repr_html_()

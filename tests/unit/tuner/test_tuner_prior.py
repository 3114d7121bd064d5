"""The prior: which schedule a function gets before anything was measured."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import tvm

from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.rule import AppliedRule, applied_rule
from loopwright.codegen.rules import prior
from loopwright.codegen.serialization import trace_to_list
from loopwright.codegen.target import target_from
from tests.support.convolution_programs import depthwise_nchw, depthwise_nhwc, pool, winograd_image, winograd_result
from tests.support.rule_programs import (
    TARGET,
    check_results,
    layer_norm,
    linear,
    log_softmax,
    padded_attention,
    product,
    rms_norm,
    silu,
    softmax,
    with_weight,
)
from tuner.space.builtin import builtin_space

AVX512 = target_from({"kind": "llvm", "mcpu": "znver4", "num-cores": 1})
LARGE_POOL = pool(1, 50, 50, 64, window=3, stride=2, kind="max", layout="NHWC")


def rules(mod: tvm.IRModule, count: int) -> list[str]:
    """Return the rules of the first choices."""
    applied = [applied_rule(trace) for trace in itertools.islice(prior.choices(mod, TARGET), count)]
    return [rule.name for rule in applied if rule is not None]


def applied(schedule: Any) -> AppliedRule | None:
    return applied_rule(trace_to_list(schedule.trace))


@pytest.mark.parametrize(
    ("mod", "rule"),
    [
        (product(33, 48, 20), "register_tile"),
        (product(1, 80, 36), "gemv"),
        (linear(1, 40, 24), "gemv"),
        (with_weight(product(1, 80, 36), 1), "register_tile"),
        (softmax(6, 50), "row_reduce"),
        (silu(3, 70), "elementwise"),
        (winograd_image(14, 14, 64), "winograd"),
        (winograd_result(14, 14, 64), "winograd"),
    ],
)
def test_the_rule_for_the_most_special_form_comes_first(mod: tvm.IRModule, rule: str) -> None:
    assert rules(mod, 1) == [rule]


@pytest.mark.parametrize(("rows", "columns"), [(90, 112), (33, 80), (70, 176), (17, 48)])
def test_a_tile_of_a_product_pads_no_columns_and_has_enough_sums(rows: int, columns: int) -> None:
    rule = applied_rule(next(iter(prior.choices(product(rows, columns, 24), AVX512))))
    assert rule is not None
    assert columns % (16 * rule.knobs["vectors"]) == 0
    assert rule.knobs["rows"] * rule.knobs["vectors"] >= 8


@pytest.mark.parametrize("mod", [product(1, 76, 36), softmax(5, 37)])
def test_the_first_choice_computes_the_same(mod: tvm.IRModule) -> None:
    trace = next(iter(prior.choices(mod, TARGET)))
    check_results(mod, scheduled_module(mod, trace, TARGET))


@pytest.mark.parametrize(
    ("mod", "rows", "vectors"),
    [
        (softmax(12, 1200), 4, 4),
        (layer_norm(12, 1200), 1, 4),
        (rms_norm(12, 1200), 1, 4),
        (log_softmax(12, 1200), 1, 4),
        (softmax(12, 900), 2, 4),
        (layer_norm(12, 60), 2, 2),
        (rms_norm(12, 31), 2, 1),
    ],
)
def test_short_rows_are_reduced_two_at_a_time_and_long_ones_one_at_a_time_if_their_terms_are_computed(
    mod: tvm.IRModule, rows: int, vectors: int
) -> None:
    rule = applied_rule(next(iter(prior.choices(mod, TARGET))))
    assert rule is not None
    assert (rule.knobs["rows"], rule.knobs["vectors"]) == (rows, vectors)


@pytest.mark.parametrize("mod", [layer_norm(12, 60), softmax(12, 60), LARGE_POOL])
def test_one_thread_runs_no_parallel_loop(mod: tvm.IRModule) -> None:
    target = target_from({"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 1})
    rule = applied_rule(next(iter(prior.choices(mod, target))))
    assert rule is not None
    assert rule.knobs["parallel"] == 0


@pytest.mark.parametrize(("size", "window", "rows"), [(14, 5, 14), (20, 3, 4), (30, 3, 6), (3, 3, 1)])
def test_a_tile_of_a_depthwise_convolution_divides_the_line(size: int, window: int, rows: int) -> None:
    rule = applied_rule(next(iter(prior.choices(depthwise_nhwc(size, 16, window, 1), TARGET))))
    assert rule is not None
    assert (rule.name, rule.knobs["rows"]) == ("column_reduce", rows)


@pytest.mark.parametrize("height", [2, 4, 8])
def test_a_pooling_of_few_lines_has_a_first_choice(height: int) -> None:
    mod = pool(1, 6, height, 40, window=2, stride=2, kind="max", layout="NCHW")
    check_results(mod, scheduled_module(mod, next(iter(prior.choices(mod, TARGET))), TARGET))


@pytest.mark.parametrize(
    ("mod", "rows", "lanes"),
    [
        (depthwise_nchw(35, 4, 3, 1), 4, 8),
        (depthwise_nchw(70, 4, 5, 2), 4, 16),
        (pool(1, 5, 66, 66, window=2, stride=2, kind="max", layout="NCHW"), 1, 16),
        (pool(1, 5, 44, 44, window=3, stride=1, kind="avg", layout="NCHW"), 4, 8),
    ],
)
def test_windows_that_overlap_share_loads_and_cross_few_cache_lines(mod: tvm.IRModule, rows: int, lanes: int) -> None:
    rule = applied_rule(next(iter(prior.choices(mod, AVX512))))
    assert rule is not None
    assert (rule.name, rule.knobs["rows"], rule.knobs["lanes"]) == ("window_reduce", rows, lanes)


@pytest.mark.parametrize(("shape", "tasks"), [((125, 24), 8), ((128, 24), 1), ((9, 8), 8), ((2, 9, 8), 1)])
def test_an_odd_number_of_vectors_is_shared_in_more_parts(shape: tuple[int, ...], tasks: int) -> None:
    rule = applied_rule(next(iter(prior.choices(silu(*shape), TARGET))))
    assert rule is not None
    assert (rule.name, rule.knobs["tasks"]) == ("elementwise", tasks)


@pytest.mark.parametrize(
    ("heads", "rows", "tasks"), [(3, 197, 2), (6, 197, 1), (None, 77, 2), (5, 130, 2), (5, 77, 1), (1, 12, 1)]
)
def test_heads_of_attention_are_divided_if_two_threads_share_them_unevenly(
    heads: int | None, rows: int, tasks: int
) -> None:
    rule = applied_rule(next(iter(prior.choices(padded_attention(heads, rows, 24, 16), TARGET))))
    assert rule is not None
    assert (rule.name, rule.knobs["tasks"]) == ("attention", tasks)


def test_a_search_begins_with_the_first_choice() -> None:
    mod = product(20, 32, 24)
    space = builtin_space(mod, TARGET, 1)
    first: Any = space.replay(space.seeds[0], 1)
    assert trace_to_list(first.trace) == next(iter(prior.choices(mod, TARGET)))


def test_each_rule_is_tried_once_before_the_second_choices_of_the_most_special_one() -> None:
    names = rules(winograd_image(14, 14, 64), 12)
    assert names[:4] == ["winograd", "elementwise", "winograd", "elementwise"]


@pytest.mark.parametrize("mod", [silu(60, 90), softmax(40, 300), LARGE_POOL])
def test_neighbours_of_the_first_choice_fill_a_first_batch(mod: tvm.IRModule) -> None:
    space = builtin_space(mod, AVX512, 1)
    made = [space.replay(trace, 1) for trace in (*space.seeds, *space.neighbours)]
    first, *others = [rule.knobs for each in made if each is not None and (rule := applied(each)) is not None]
    assert len(others) >= 5
    assert first not in others
    assert sum(others[-1][name] != value for name, value in first.items()) == 1


def test_there_is_no_choice_for_a_gpu() -> None:
    assert not list(prior.choices(softmax(4, 32), target_from({"kind": "cuda", "arch": "sm_80"})))

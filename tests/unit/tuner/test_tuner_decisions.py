"""Decisions of real traces as a table, and which of them explain the latency."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from tests.support import workloads as programs
from tuner.codec import encode
from tuner.inspection import decisions
from tuner.space.builtin import builtin_space
from tuner.types import Workload
from tuner.workload import make_workload

TARGET = {"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 2}


def traces(workload: Workload, target: Any, count: int) -> list[str]:
    space = builtin_space(module_from_json(workload.module_json), target_from(target), 1)
    replayed = (space.replay(space.traces[0], seed) for seed in range(1, 10 * count))
    accepted = (trace_to_json(schedule.trace) for schedule in replayed if schedule is not None)
    found = list(itertools.islice(accepted, count))
    assert len(found) == count
    return found


def table(module_json: str, traces: list[str], latencies: list[float]) -> Iterator[dict[str, Any]]:
    return map(encode, decisions.table(module_json, traces, json.dumps(TARGET), latencies))


def columns(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {column["name"]: column for column in found["columns"]}


@pytest.fixture(scope="module")
def product() -> tuple[Workload, list[str]]:
    workload = programs.product(64)
    return workload, traces(workload, TARGET, 40)


def test_columns_are_named_after_block_and_loop(product: tuple[Workload, list[str]]) -> None:
    workload, found = product
    (answer,) = table(workload.module_json, found, [1.0] * len(found))
    named = columns(answer)
    assert {"Y: tile i[3]", "Y: tile j[0]", "Y: tile k[1]", "unroll steps", "Y: parallel", "Y: vector"} <= set(named)
    assert {column["kind"] for column in answer["columns"]} <= {"tile", "categorical", "location", "parallel", "vector"}
    place = [column["name"] for column in answer["columns"]].index("Y: tile i[3]")
    for trace, row in zip(found, answer["rows"], strict=True):
        instructions, decisions = json.loads(trace)
        factors = dict(decisions)[next(n for n, i in enumerate(instructions) if i[0] == "SamplePerfectTile")]
        assert row[place] == factors[3]
    covered = {each["name"]: (each["tried"], each["possible"]) for each in answer["coverage"]}
    factors = {row[place] for row in answer["rows"]}
    assert covered["Y: tile i[3]"] == (len(factors), 7), "64 has seven divisors"
    assert "Y: parallel" not in covered, "no instruction samples it"
    assert all(1 <= tried <= possible for tried, possible in covered.values())
    assert named["Y: tile i[3]"]["log"]
    assert not named["unroll steps"]["log"]


def test_what_the_latency_follows_is_what_matters(product: tuple[Workload, list[str]]) -> None:
    workload, found = product
    (first,) = table(workload.module_json, found, [1.0] * len(found))
    place = [column["name"] for column in first["columns"]].index("Y: tile k[1]")
    latencies = [1e-3 / row[place] for row in first["rows"]]
    (answer,) = table(workload.module_json, found, latencies)
    importances = {name: column["importance"] for name, column in columns(answer).items()}
    assert sum(importances.values()) == pytest.approx(1.0)
    # Both factors of k say the same.
    assert importances["Y: tile k[1]"] + importances["Y: tile k[0]"] > 0.95


def test_too_little_says_nothing(product: tuple[Workload, list[str]]) -> None:
    workload, found = product
    (few,) = table(workload.module_json, found[:7], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    assert {column["importance"] for column in few["columns"]} == {None}
    (equal,) = table(workload.module_json, found, [1.0] * len(found))
    assert {column["importance"] for column in equal["columns"]} == {None}


def test_one_trial_has_all_its_decisions(product: tuple[Workload, list[str]]) -> None:
    workload, found = product
    (answer,) = table(workload.module_json, found[:1], [1.0])
    assert len(answer["columns"]) == len(answer["rows"][0]) > 8


def test_equal_rows_have_nothing_to_show(product: tuple[Workload, list[str]]) -> None:
    workload, found = product
    (answer,) = table(workload.module_json, [found[0], found[0]], [1.0, 2.0])
    assert (answer["columns"], answer["rows"]) == ([], [[], []])
    assert {each["tried"] for each in answer["coverage"]} == {1}


def test_threads_of_a_gpu() -> None:
    workload = programs.product(64)
    found = traces(workload, programs.CUDA, 2)
    (answer,) = table(workload.module_json, found, [1.0, 2.0])
    kinds = {column["kind"] for column in answer["columns"]}
    assert "tile" in kinds
    (alone,) = table(workload.module_json, found[:1], [1.0])
    assert {"Y_local: blockIdx.x", "Y_local: threadIdx.x"} <= set(columns(alone))


def test_places_are_categories_in_their_order() -> None:
    """TVM's softmax: its producers may be computed at any of the consumer's loops."""
    from tvm.s_tir.meta_schedule.testing import te_workload

    workload = make_workload(te_workload.create_te_workload("SFM", 0), "softmax")
    (answer,) = table(workload.module_json, traces(workload, TARGET, 12), [float(n) for n in range(1, 13)])
    places = [column for column in answer["columns"] if column["kind"] == "location"]
    assert places
    for column in places:
        position = answer["columns"].index(column)
        assert column["name"].endswith(": place")
        used = {row[position] for row in answer["rows"]}
        assert used <= {*map(float, range(len(column["categories"]))), None}

"""Stock MetaSchedule's JSONDatabase on both ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tvm
import tvm_ffi
from tvm.s_tir import Schedule
from tvm.target import Target

from db.exchange.json_pair import pack, unpack, workload_line_bytes
from loopwright.codegen.program.digest import workload_digest
from loopwright.codegen.program.intrinsics import load_intrinsics
from loopwright.codegen.serialization import module_from_json, module_to_json, trace_to_json
from loopwright.codegen.target import canonical_target, target_from
from tests.support import convolution_programs, rule_programs
from tests.unit.db_json import stock
from tuner.space.builtin import builtin_space
from workers.child.warm_child import WarmChild
from workers.walls.levels import Policy, choose

MM_RELU, DOT = stock.module(stock.MM_RELU), stock.module(stock.DOT)


def _tensorized() -> Schedule:
    load_intrinsics(Target("llvm"))
    schedule = Schedule(DOT)
    block = schedule.get_sblock("C")
    loop, _ = schedule.get_loops(block)
    schedule.decompose_reduction(block, loop)
    schedule.tensorize(schedule.get_loops(block)[0], "dot_16x4_vnni")
    return schedule


@pytest.fixture(scope="module")
def child() -> Iterator[WarmChild]:
    child = WarmChild(["db.exchange.tvm_json"], level=choose(Policy.PREFER))
    yield child
    child.close()


@pytest.fixture(scope="module")
def schedules() -> list[Schedule]:
    return stock.schedules(MM_RELU)


@pytest.fixture(scope="module")
def texts(schedules: list[Schedule], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A database of mm_relu, whose last sketch is the fastest, and of a tensorized product, with a failure between."""
    measured = [(schedule, MM_RELU, [3e-3 / (i + 1), 4e-3 / (i + 1)]) for i, schedule in enumerate(schedules)]
    failed = (schedules[0], MM_RELU, [1e10])
    return stock.write(tmp_path_factory.mktemp("stock"), [*measured, failed, (_tensorized(), DOT, [1e-6])])


def test_what_stock_wrote_is_read(texts: tuple[str, str], schedules: list[Schedule]) -> None:
    taken = stock.read(*texts)
    assert [w["hash"] for w in taken["workloads"]] == [workload_digest(MM_RELU), workload_digest(DOT)]
    first = taken["workloads"][0]
    assert first["args"] == [{"shape": [64, 64], "dtype": "float32", "values": "any"}] * 3
    assert tvm_ffi.structural_equal(module_from_json(first["module_json"]), MM_RELU)
    assert "T.max" in first["script"]
    *mm_relu, dot = taken["records"]
    assert [r["trace_json"] for r in mm_relu] == [trace_to_json(schedule.trace) for schedule in schedules]
    assert [r["run_secs"] for r in mm_relu] == [[3e-3 / (i + 1), 4e-3 / (i + 1)] for i in range(len(schedules))]
    assert {r["target_json"] for r in taken["records"]} == {canonical_target(stock.TARGET)}
    assert dot["workload_hash"] == workload_digest(DOT)
    assert "dot_16x4_vnni" in dot["trace_json"]
    (failure,) = taken["errors"]
    assert failure.startswith(f"database_tuning_record.json line {len(schedules) + 1}: a failed measurement")


def test_stock_reads_and_applies_what_is_exported(
    texts: tuple[str, str], schedules: list[Schedule], tmp_path: Path
) -> None:
    taken = stock.read(*texts)
    database = stock.load(tmp_path / "exported", stock.export(taken["workloads"], taken["records"]))
    assert len(database) == len(schedules) + 1
    for mod, run_secs, expected in [
        (MM_RELU, [3e-3 / len(schedules), 4e-3 / len(schedules)], schedules[-1]),
        (DOT, [1e-6], _tensorized()),
    ]:
        assert database.has_workload(mod)
        record = database.query_tuning_record(mod, stock.TARGET, "main")
        assert [seconds.value for seconds in record.run_secs] == pytest.approx(run_secs)
        assert canonical_target(record.target) == canonical_target(stock.TARGET)
        assert len(record.args_info) == 3
        assert tvm_ffi.structural_equal(database.query_schedule(mod, stock.TARGET, "main").mod, expected.mod)
        assert tvm_ffi.structural_equal(database.query_ir_module(mod, stock.TARGET, "main"), expected.mod)
    tvm.compile(database.query_ir_module(MM_RELU, stock.TARGET, "main"), target="llvm")


def test_hashes_and_modules_are_those_of_stock(texts: tuple[str, str]) -> None:
    taken = stock.read(*texts)
    lines = stock.export(taken["workloads"], [])["database_workload"].splitlines()
    stocks = [json.loads(line) for line in texts[0].splitlines()]
    for line, workload, (structural_hash, _) in zip(lines, taken["workloads"], stocks, strict=True):
        assert json.loads(line) == [structural_hash, json.loads(stock.workload_line(workload["module_json"]))[1]]
        assert len(line) + 1 == workload_line_bytes(len(workload["module_json"].encode()))


def test_an_export_reads_back_as_it_was(texts: tuple[str, str]) -> None:
    taken = stock.read(*texts)
    again = stock.read(*unpack(pack(stock.export(taken["workloads"], taken["records"]))))
    assert again == {**taken, "errors": []}


@pytest.mark.parametrize(
    "mod",
    [
        rule_programs.product(29, 37, 11),
        rule_programs.byte_product(20, 40, 30),
        rule_programs.byte_product(13, 40, 16, ("int8", "int8")),
        rule_programs.softmax(5, 37),
        pytest.param(rule_programs.attention(2, 13, 32, 16), marks=pytest.mark.whole),
        pytest.param(convolution_programs.conv_nhwc(13, 3, 24, 7, 2, batch=2), marks=pytest.mark.whole),
        pytest.param(convolution_programs.depthwise_nhwc(15, 20, 5, 2), marks=pytest.mark.whole),
        pytest.param(convolution_programs.winograd_image(18, 21, 64), marks=pytest.mark.whole),
    ],
)
def test_what_the_rules_make_comes_back(mod: tvm.IRModule, child: WarmChild) -> None:
    """Read in a process that does not know the intrinsics which the rules have registered in this one."""
    target = target_from({"kind": "llvm", "mcpu": "icelake-server", "mattr": ["-prefer-256-bit"], "num-cores": 2})
    space = builtin_space(mod, target, seed=1)
    workload = {"hash": workload_digest(mod), "module_json": module_to_json(mod)}
    made = [schedule for seed in space.seeds if (schedule := space.replay(seed, 1)) is not None]
    line = {"workload_hash": workload["hash"], "run_secs": [1e-6], "target_json": canonical_target(target)}
    records = [{**line, "trace_json": trace_to_json(schedule.trace)} for schedule in made]
    assert len(records) > 2
    texts = unpack(pack(stock.export([workload], records)))
    again = child.call("db.exchange.tvm_json:read", {"workload_text": texts[0], "record_text": texts[1]}, deadline=60)
    assert again["errors"] == []
    assert again["records"] == records


def test_a_best_that_is_the_baseline_is_skipped(texts: tuple[str, str], tmp_path: Path) -> None:
    taken = stock.read(*texts)
    baseline = {**taken["records"][0], "trace_json": None}
    pair = stock.export(taken["workloads"], [baseline, *taken["records"], baseline])
    assert pair["skipped"] == 2
    assert len(stock.load(tmp_path / "exported", pair)) == len(taken["records"])
    assert stock.export([], []) == {"database_workload": "", "database_tuning_record": "", "skipped": 0}


def test_equal_workloads_stand_once(texts: tuple[str, str]) -> None:
    workload_text, record_text = texts
    renamed = stock.module(stock.MM_RELU.replace("A", "left"))
    doubled = f"{stock.workload_line(module_to_json(renamed))}\n{workload_text}"
    shifted = "".join(json.dumps([e[0] + 1, e[1]]) + "\n" for e in map(json.loads, record_text.splitlines()))
    taken = stock.read(doubled, shifted)
    assert [w["hash"] for w in taken["workloads"]] == [workload_digest(MM_RELU), workload_digest(DOT)]
    assert taken["records"] == stock.read(*texts)["records"]


def test_it_runs_in_a_warm_child(texts: tuple[str, str], child: WarmChild) -> None:
    arguments: dict[str, Any] = {"workload_text": texts[0], "record_text": texts[1]}
    taken = child.call("db.exchange.tvm_json:read", arguments, deadline=60)
    assert taken == stock.read(*texts)
    exported = {"workloads": taken["workloads"], "records": taken["records"]}
    assert child.call("db.exchange.tvm_json:export", exported, deadline=60) == stock.export(**exported)

"""`Client.database`: the bests as a database of TVM's, which asks the service when TVM asks."""

from __future__ import annotations

import pytest
import tvm
from tvm import relax
from tvm.s_tir import Schedule
from tvm_ffi import structural_equal

import loopwright
from loopwright import frontends
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.serialization import trace_to_list
from tests.support.programs import MM_RELU
from tests.unit.client.fake_service import FakeService, best_json
from tests.unit.client.known_bests import HASH, LLVM, layers, scheduled, serve, two_layers


def test_tvm_itself_picks_up_the_database(client: loopwright.Client, layer: tvm.IRModule) -> None:
    database = client.database(LLVM)
    target = tvm.target.Target(LLVM)
    assert isinstance(database, tvm.s_tir.meta_schedule.Database)
    with target, database:
        applied = relax.get_pipeline("zero")(two_layers())
    marks = {str(v.name_hint): bool(f.attrs.get("tirx.is_scheduled")) for v, f in prim_funcs(applied)}
    assert sorted(marks.values()) == [False, True]
    assert "T.parallel" in applied.script()
    assert {*database.hits, *database.misses} == set(marks)
    assert {name for name, tuned in marks.items() if tuned} == set(database.hits)

    from tvm.s_tir.meta_schedule.relax_integration import compile_relax

    built = compile_relax(database, two_layers(), target, None)
    assert isinstance(built, relax.VMExecutable)


def test_the_database_answers_as_one_of_tvm(
    service: FakeService, client: loopwright.Client, tuned: Schedule, mod: tvm.IRModule
) -> None:
    database = client.database(LLVM)
    target = tvm.target.Target(LLVM)
    assert service.requests == []
    assert database.has_workload(mod)
    assert len(database) == 1
    record = database.query_tuning_record(mod, target, "main")
    assert [float(seconds) for seconds in record.run_secs] == [pytest.approx(1e-5)]
    assert structural_equal(database.query_ir_module(mod, target, "main"), tuned.mod)
    assert structural_equal(database.query_schedule(mod, target, "main").mod, tuned.mod)
    assert len(database.get_top_k(database.commit_workload(mod), 3)) == 1
    assert len(database.get_all_tuning_records()) == 1
    with pytest.raises(Exception, match="read-only"):
        database.commit_tuning_record(record)
    assert len(service.requests) == 1


def test_the_database_does_not_answer_for_another_target(
    client: loopwright.Client, tuned: Schedule, mod: tvm.IRModule
) -> None:
    database = client.database(LLVM)
    assert database.query_tuning_record(mod, tvm.target.Target({"kind": "cuda", "arch": "sm_90"}), "main") is None


def test_the_database_may_be_of_one_device_class(
    service: FakeService, client: loopwright.Client, mod: tvm.IRModule
) -> None:
    trace = trace_to_list(scheduled(mod).trace)
    serve(service, best_json(HASH, trace, device_class="class-2"))
    assert client.database(LLVM, "class-2").has_workload(mod)
    assert not client.database(LLVM, "class-3").has_workload(mod)


def test_the_database_of_auto_says_no_for_another_kind(
    service: FakeService, client: loopwright.Client, tuned: Schedule, mod: tvm.IRModule
) -> None:
    serve(service, best_json(HASH, trace_to_list(tuned.trace)), auto=LLVM)
    database = client.database()
    assert database.query_tuning_record(mod, tvm.target.Target({"kind": "cuda", "arch": "sm_90"}), "main") is None
    assert database.query_tuning_record(mod, tvm.target.Target(LLVM), "main") is not None


def test_the_database_asks_for_a_whole_model_at_once(service: FakeService, client: loopwright.Client) -> None:
    serve(service)
    target = tvm.target.Target(LLVM)
    with target:
        lowered = relax.get_pipeline("zero")(layers(10))
    database = client.database(LLVM)
    database.look_up(lowered)
    with target, database:
        relax.transform.MetaScheduleApplyDatabase()(lowered)
    assert len(database.misses) == 10
    assert len(service.requests) == 1


def test_asking_leaves_nothing_behind(client: loopwright.Client, tuned: Schedule) -> None:
    other = frontends.to_program(MM_RELU.replace("64", "32")).module
    database = client.database(LLVM)
    assert database.query_tuning_record(other, tvm.target.Target(LLVM), "main") is None
    assert not database.has_workload(other)
    assert database.get_all_tuning_records() == []

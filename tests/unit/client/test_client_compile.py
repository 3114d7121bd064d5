"""Best schedules reach programs: apply and compile, with TVM, from bests that a service serves."""

from __future__ import annotations

import logging
import sys
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.s_tir import Schedule
from tvm_ffi import structural_equal

import loopwright
from loopwright import frontends
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.digest import function_digest
from loopwright.codegen.program.lowered_bounds import PROVEN
from loopwright.codegen.program.lowering import lower
from loopwright.codegen.serialization import module_to_json, trace_to_list
from tests.support.programs import MM_RELU, OTHER_BLOCKS, RENAMED
from tests.unit.client.fake_service import Answer, FakeService, best_json
from tests.unit.client.known_bests import HASH, LLVM, LOOKUP, layers, scheduled, serve, two_layers


def run_mm(built: Any, name: str) -> None:
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((64, 64), dtype="float32") for _ in range(2))
    out = tvm.runtime.tensor(np.full((64, 64), np.nan, dtype="float32"))
    built[name](tvm.runtime.tensor(a), tvm.runtime.tensor(b), out)
    np.testing.assert_allclose(out.numpy(), np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)


def test_apply_makes_the_scheduled_program(client: loopwright.Client, tuned: Schedule, mod: tvm.IRModule) -> None:
    before = mod.script()
    applied = client.apply(mod, LLVM)
    assert structural_equal(
        applied["main"].without_attr(PROVEN), tuned.mod["main"].with_attr("tirx.is_scheduled", True)
    )
    assert mod.script() == before
    assert client.last_report is not None
    assert [(f.name, f.outcome) for f in client.last_report.functions] == [("main", "tuned")]
    assert "main: tuned, 10.0x" in str(client.last_report)


def test_a_program_is_known_by_what_it_computes(
    service: FakeService, client: loopwright.Client, tuned: Schedule
) -> None:
    applied = client.apply(RENAMED, LLVM)
    assert client.last_report is not None
    assert client.last_report.misses == ()
    func = applied["mm_relu"]
    assert str(func.attrs["global_symbol"]) == "mm_relu"
    assert func.attrs["tirx.noalias"]
    assert structural_equal(func.body, tuned.mod["main"].body, map_free_vars=True)
    run_mm(client.compile(RENAMED, LLVM), "mm_relu")


def test_a_program_with_other_block_names_is_another_program(client: loopwright.Client, tuned: Schedule) -> None:
    client.apply(OTHER_BLOCKS, LLVM)
    assert client.last_report is not None
    assert [(f.name, f.outcome) for f in client.last_report.functions] == [("mm_relu", "missed")]


def test_the_service_is_asked_for_the_target(service: FakeService, client: loopwright.Client, tuned: Schedule) -> None:
    client.apply(MM_RELU, LLVM)
    [request] = service.requests
    assert (request.method, request.path) == ("POST", LOOKUP)
    asked = {"functions": [HASH], "target": LLVM, "device_class": None, "modules": False, "imported": False}
    assert request.json() == asked


def test_auto_is_what_the_service_would_take(service: FakeService, client: loopwright.Client, tuned: Schedule) -> None:
    serve(service, best_json(HASH, trace_to_list(tuned.trace)), auto=LLVM)
    client.apply(MM_RELU)
    [request] = service.requests
    assert request.json()["target"] == "auto"
    assert client.last_report is not None
    assert client.last_report.misses == ()


def test_what_auto_is_may_be_a_gpu(service: FakeService, client: loopwright.Client) -> None:
    serve(service, auto={"kind": "cuda", "arch": "sm_90"})
    built = client.compile(MM_RELU)
    assert [str(module.kind) for module in built.imports] == ["cuda"]
    client.compile(two_layers())
    assert len(service.requests) == 2


def test_a_model_is_one_request_whatever_it_has(service: FakeService, client: loopwright.Client) -> None:
    serve(service)
    model = layers(10)
    for use in (client.apply, client.compile):
        service.requests.clear()
        use(model, LLVM)
        [request] = service.requests
        assert len(set(request.json()["functions"])) == 10
    service.requests.clear()
    relax.build(model, tvm.target.Target(LLVM), relax_pipeline=client.relax_pipeline(LLVM))
    assert len(service.requests) == 1
    service.requests.clear()
    assert client.best(MM_RELU, LLVM) is None
    assert len(service.requests) == 1


def test_a_model_that_is_lowered_already_finds_the_same(service: FakeService, client: loopwright.Client) -> None:
    lowered = lower(two_layers(), tvm.target.Target(LLVM))
    serve(service, *(best_json(function_digest(func), None) for _, func in prim_funcs(lowered)))
    for model in (two_layers(), lowered):
        client.apply(model, LLVM)
        assert client.last_report is not None
        assert [function.outcome for function in client.last_report.functions] == ["baseline", "baseline"]


def test_a_model_without_functions_of_its_own_asks_nothing(service: FakeService, client: loopwright.Client) -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(
            builder.emit(relax.op.call_dps_packed("mine", (x,), relax.TensorType((4,), "float32")))
        )
    assert isinstance(client.compile(builder.get(), LLVM), relax.VMExecutable)
    assert not service.requests


def test_a_miss_is_said(
    service: FakeService, client: loopwright.Client, mod: tvm.IRModule, caplog: pytest.LogCaptureFixture
) -> None:
    serve(service)
    with caplog.at_level(logging.WARNING, logger="loopwright"):
        applied = client.apply(mod, LLVM)
    assert structural_equal(applied, mod)
    assert client.last_report is not None
    assert [function.name for function in client.last_report.misses] == ["main"]
    assert "main: missed" in caplog.text


def test_a_best_that_is_the_baseline_hits(service: FakeService, client: loopwright.Client, mod: tvm.IRModule) -> None:
    serve(service, best_json(HASH, None))
    assert structural_equal(client.apply(mod, LLVM), mod)
    assert client.last_report is not None
    assert [function.outcome for function in client.last_report.functions] == ["baseline"]
    database = client.database(LLVM)
    assert database.query_tuning_record(mod, tvm.target.Target(LLVM), "main") is None
    assert database.get_all_tuning_records() == []


def test_compiled_code_holds_the_schedule(client: loopwright.Client, tuned: Schedule, mod: tvm.IRModule) -> None:
    built = client.compile(mod, LLVM)
    run_mm(built, "main")
    # Only the schedule makes the loop parallel.
    parallel = "TVMBackendParallelLaunch"
    assert parallel in built.inspect_source("ll")
    assert parallel not in tvm.compile(mod, target=tvm.target.Target(LLVM)).mod.inspect_source("ll")


@pytest.mark.parametrize(
    ("configured", "usable", "advice"),
    [
        (8, 8, None),
        (16, 16, "INFO: expect other times"),
        (4, 16, "WARNING: set TVM_NUM_THREADS=8 "),
        (16, 8, "WARNING: set TVM_NUM_THREADS=8 "),
        (4, 6, "WARNING: set TVM_NUM_THREADS=6 "),
    ],
)
def test_other_threads_than_the_certified_are_said(
    service: FakeService,
    client: loopwright.Client,
    mod: tvm.IRModule,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    configured: int,
    usable: int,
    advice: str | None,
) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", str(configured))
    monkeypatch.setattr("loopwright.codegen.host.threads.usable_cores", lambda: usable)
    serve(service, best_json(HASH, None, target={"kind": "llvm", "num-cores": 8}))
    with caplog.at_level(logging.INFO, logger="loopwright"):
        client.compile(mod, LLVM)
    assert client.last_report is not None
    assert client.last_report.threads == (8,)
    said = [record for record in caplog.records if "threads" in record.getMessage()]
    assert len(said) == (advice is not None)
    for record in said:
        level, text = str(advice).split(": ")
        assert record.levelname == level
        assert text in record.getMessage()


def test_a_function_is_looked_up_by_its_program(client: loopwright.Client, tuned: Schedule, mod: tvm.IRModule) -> None:
    found = client.best(mod["main"], LLVM)
    assert found is not None
    assert found.workload_hash == HASH


def test_a_relax_model_runs_with_its_schedules(client: loopwright.Client, layer: tvm.IRModule) -> None:
    generator = np.random.default_rng(0)
    x, w1, w2 = (generator.standard_normal(shape, dtype="float32") for shape in ((1, 64), (64, 32), (32, 16)))
    want = np.maximum(x @ w1, 0) @ w2

    built = client.compile(two_layers(), LLVM)
    assert client.last_report is not None
    assert sorted(function.outcome for function in client.last_report.functions) == ["missed", "tuned"]
    machine = relax.VirtualMachine(built, tvm.cpu())
    got = machine["main"](*(tvm.runtime.tensor(value) for value in (x, w1, w2)))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-4)

    bound = client.compile(two_layers(), LLVM, params={"w1": tvm.runtime.tensor(w1), "w2": tvm.runtime.tensor(w2)})
    got = relax.VirtualMachine(bound, tvm.cpu())["main"](tvm.runtime.tensor(x))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-4)


def test_ones_own_build_with_the_bests(client: loopwright.Client, layer: tvm.IRModule) -> None:
    generator = np.random.default_rng(0)
    x, w1, w2 = (generator.standard_normal(shape, dtype="float32") for shape in ((1, 64), (64, 32), (32, 16)))
    target = tvm.target.Target(LLVM)
    built = relax.build(two_layers(), target, relax_pipeline=client.relax_pipeline(LLVM))
    got = relax.VirtualMachine(built, tvm.cpu())["main"](*(tvm.runtime.tensor(value) for value in (x, w1, w2)))
    np.testing.assert_allclose(got.numpy(), np.maximum(x @ w1, 0) @ w2, rtol=1e-4, atol=1e-4)
    assert "TVMBackendParallelLaunch" in built.mod.imports[0].inspect_source("ll")


def test_a_best_that_needs_a_newer_codegen_is_refused(
    service: FakeService, client: loopwright.Client, mod: tvm.IRModule, tuned: Schedule
) -> None:
    serve(service, best_json(HASH, trace_to_list(tuned.trace), codegen_version=99))
    with pytest.raises(loopwright.UnsupportedVersion, match=r"99.*loopwright\[tvm\]"):
        client.apply(mod, LLVM)


def test_on_a_gpu_what_is_not_known_gets_tvms_default(service: FakeService, client: loopwright.Client) -> None:
    serve(service)
    mod = frontends.to_program(MM_RELU).module
    before = mod.script()
    built = client.compile(mod, {"kind": "cuda", "arch": "sm_90"})
    assert mod.script() == before
    assert client.last_report is not None
    assert len(client.last_report.misses) == 1
    assert [str(module.kind) for module in built.imports] == ["cuda"]


def test_the_faster_of_two_device_classes_is_taken(
    service: FakeService, client: loopwright.Client, mod: tvm.IRModule
) -> None:
    bests = [best_json(HASH, None), best_json(HASH, trace_to_list(scheduled(mod).trace), device_class="class-2")]
    serve(service, *bests)
    client.apply(mod, LLVM)
    assert client.last_report is not None
    [function] = client.last_report.functions
    assert function.best is not None
    assert function.best.device_class == "class-2"


def test_tensorised_traces_find_their_intrinsics_without_loading_all_vendors(
    service: FakeService, client: loopwright.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "tvm.s_tir.tensor_intrin", raising=False)  # another test may have loaded it
    source = MM_RELU[: MM_RELU.index("@I.ir_module")] + TENSORISABLE
    program = frontends.to_program(source).module
    instructions = [
        ["GetSBlock", [], ["C", "main"], ["b0"]],
        ["GetLoops", ["b0"], [], ["l1", "l2"]],
        ["Tensorize", ["l1"], ["dot_16x4_vnni", True], []],
    ]
    digest = function_digest(program["main"])
    serve(service, best_json(digest, [instructions, []]))
    applied = client.apply(program, {"kind": "llvm", "mcpu": "cascadelake"})
    assert "vpdpbusd" in applied.script()
    assert "tvm.s_tir.tensor_intrin" not in sys.modules


TENSORISABLE = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((4,), "uint8"), B: T.Buffer((16, 4), "int8"), C: T.Buffer((16,), "int32")):
        for i, k in T.grid(16, 4):
            with T.sblock("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + T.cast(A[vk], "int32") * T.cast(B[vi, vk], "int32")
"""


def test_params_need_a_relax_model(client: loopwright.Client, tuned: Schedule, mod: tvm.IRModule) -> None:
    with pytest.raises(ValueError, match="params"):
        client.compile(mod, LLVM, params={"x": tvm.runtime.tensor(np.zeros(1, "float32"))})


def test_a_jobs_module_comes_back(service: FakeService, client: loopwright.Client, mod: tvm.IRModule) -> None:
    from tests.unit.client.fake_service import job_json

    service.on("GET", "/api/v1/jobs/job-1", job_json("succeeded"))
    payload = {"format": "tvm-json", "data": module_to_json(mod)}
    service.on("GET", "/api/v1/jobs/job-1/module", Answer(payload))
    assert structural_equal(client.job("job-1").module(), mod)

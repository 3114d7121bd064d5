"""Instant answers: functions of which no best is known get the prior's choice, checked and timed here."""

from __future__ import annotations

import itertools
import logging
import math
import re
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from tvm import relax
from tvm.s_tir import Schedule
from tvm_ffi import structural_equal

import loopwright
import loopwright.torch
from loopwright.applying import instant
from loopwright.codegen.machine.this_cpu import this_cpu
from loopwright.codegen.program.digest import function_digest
from loopwright.codegen.rules import prior
from loopwright.codegen.serialization import module_to_json, trace_to_list
from loopwright.codegen.target import canonical_target
from loopwright.torch import variant
from tests.support.programs import MM_RELU
from tests.support.rule_programs import product, softmax
from tests.unit.client.fake_service import FakeService, best_json, job_json
from tests.unit.client.known_bests import HASH, LLVM, scheduled, serve, two_layers


@pytest.fixture
def alone() -> Iterator[loopwright.Client]:
    """A client whose service does not run."""
    with loopwright.Client("http://127.0.0.1:9") as client:
        yield client


def prefer_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each choice seem faster than the unscheduled program, whatever else the machine does."""
    monkeypatch.setattr(instant, "_FAR_SLOWER", 0.0)
    monkeypatch.setattr(instant, "_sample", lambda call: 1e-9)


def prefer_unscheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each choice seem slower than the unscheduled program."""
    seconds = itertools.cycle([2e-6, 1e-6])
    monkeypatch.setattr(instant, "_FAR_SLOWER", math.inf)
    monkeypatch.setattr(instant, "_sample", lambda call: next(seconds))


def first_that_agrees(mod: tvm.IRModule) -> instant._Checked | None:
    target = tvm.target.Target(LLVM)
    built = instant._built(mod["main"], target, lambda trace: instant.Candidate.built(mod, trace, target))
    assert built is not None
    return instant._checked(built)


def outcomes(client: loopwright.Client) -> set[str]:
    assert client.last_report is not None
    return {function.outcome for function in client.last_report.functions}


def run(built: Any, *shapes: tuple[int, ...]) -> tuple[list[Any], Any]:
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal(shape, dtype="float32") for shape in shapes]
    outputs = relax.VirtualMachine(built, tvm.cpu())["main"](*map(tvm.runtime.tensor, inputs))
    return inputs, outputs.numpy()


def test_without_a_service_a_model_is_scheduled_by_its_rules(
    alone: loopwright.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prefer_choices(monkeypatch)
    with caplog.at_level(logging.WARNING, logger="loopwright"):
        built = alone.compile(two_layers(), tune="instant")
    inputs, result = run(built, (1, 64), (64, 32), (32, 16))
    expected = np.maximum(inputs[0] @ inputs[1], 0) @ inputs[2]
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    assert "no function has a certified best" in caplog.text
    report = alone.last_report
    assert report is not None
    assert (report.hits, report.misses, report.threads) == ((), (), ())
    assert len(report.predictions) == 2


def test_a_cache_keeps_predictions_until_the_service_knows_better(
    alone: loopwright.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    prefer_choices(monkeypatch)
    cache = tmp_path / "cache"
    first = alone.compile(two_layers(), tune="instant", cache=cache)
    report = alone.last_report
    monkeypatch.setattr(instant, "predicted", lambda *_: pytest.fail("it is not predicted again"))
    second = alone.compile(two_layers(), tune="instant", cache=cache)
    inputs = [np.random.default_rng(3).standard_normal(n, dtype="float32") for n in ((1, 64), (64, 32), (32, 16))]
    np.testing.assert_array_equal(first(*inputs), second(*inputs))
    assert report is not None
    assert alone.last_report is not None
    assert len(report.predictions) == 2
    assert alone.last_report.functions == report.functions
    assert "taken from the cache of" in alone.last_report.notes[-1]


def test_without_a_service_auto_is_this_machine(alone: loopwright.Client) -> None:
    assert canonical_target(alone.look_up(MM_RELU, tune="instant").target) == canonical_target(this_cpu())


def test_what_the_service_knows_is_not_predicted(
    service: FakeService, client: loopwright.Client, tuned: Schedule
) -> None:
    client.compile(MM_RELU, LLVM, tune="instant")
    assert outcomes(client) == {"tuned"}
    serve(service, best_json(HASH, None))
    client.compile(MM_RELU, LLVM, tune="instant")
    assert outcomes(client) == {"baseline"}


def test_a_prediction_is_not_called_certified(
    service: FakeService, client: loopwright.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefer_choices(monkeypatch)
    serve(service)
    client.apply(product(96, 128, 160), LLVM, tune="instant")
    [function] = client.last_report.predictions
    assert (function.outcome, function.best) == ("predicted", None)
    assert re.search(r"main: predicted, [\d.e+]+x over the baseline here, not certified", str(client.last_report))
    assert "0 of 1 functions have a certified best, and 1 are predicted" in str(client.last_report)


@pytest.mark.parametrize("is_relax", [False, True])
def test_what_is_faster_unscheduled_is_compiled_as_it_was_timed(
    service: FakeService, client: loopwright.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_relax: bool
) -> None:
    prefer_unscheduled(monkeypatch)
    serve(service)
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType((5, 37), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.softmax(x)))
    model = builder.get() if is_relax else softmax(5, 37)

    def code(**options: Any) -> bytes:
        path = tmp_path / "model.so"
        client.compile(model, LLVM, **options).export_library(str(path))
        return path.read_bytes()

    assert b"expf" in code()
    assert b"expf" not in code(tune="instant")  # but the polynomial that was timed
    [function] = client.last_report.misses
    assert function.prediction is not None
    assert function.prediction.trace is None
    assert f"{function.name}: missed, since unscheduled was faster here" in str(client.last_report)


def test_a_choice_with_wrong_results_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    mod = product(32, 48, 64)
    wrong = scheduled_with_short_sums(mod)
    right = next(iter(prior.choices(mod, tvm.target.Target(LLVM))))
    monkeypatch.setattr(prior, "choices", lambda *_: iter([wrong, right]))
    found = first_that_agrees(mod)
    assert found is not None
    assert found.trace == right
    monkeypatch.setattr(prior, "choices", lambda *_: iter([wrong]))
    assert first_that_agrees(mod) is None


def scheduled_with_short_sums(mod: tvm.IRModule) -> list[Any]:
    """Return a trace that keeps the sums of a product in float16."""
    schedule = Schedule(mod, seed=1)
    block = schedule.get_sblock("C")
    schedule.cache_write(block, 0, "global")
    schedule.unsafe_set_dtype(block, 0, "float16")
    return trace_to_list(schedule.trace)


@pytest.mark.parametrize(
    ("codegen_version", "is_right", "kept"), [(2, True, "record-7"), (2, False, None), (1, True, None), (9, True, None)]
)
def test_what_was_imported_is_tried_before_the_rules_and_checked_as_they_are(
    service: FakeService,
    client: loopwright.Client,
    monkeypatch: pytest.MonkeyPatch,
    codegen_version: int,
    is_right: bool,
    kept: str | None,
) -> None:
    prefer_choices(monkeypatch)
    mod = product(20, 48, 36)
    digest = function_digest(mod["main"])
    trace = list(prior.choices(mod, tvm.target.Target(LLVM)))[-1] if is_right else scheduled_with_short_sums(mod)
    version = {"codegen_version": codegen_version}
    serve(service, imported=[{"workload_hash": digest, "record_id": "record-7", "trace": trace, **version}])
    client.apply(mod, LLVM)  # which nobody has checked is not used without being asked for
    assert outcomes(client) == {"missed"}
    client.apply(mod, LLVM, tune="instant")
    [function] = client.last_report.predictions
    assert function.prediction is not None
    assert function.prediction.imported == kept
    assert (function.prediction.trace == trace) == (kept is not None)
    assert ("imported (record-7), not certified here" in str(client.last_report)) == (kept is not None)


def test_a_choice_that_cannot_be_built_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = trace_to_list(scheduled(loopwright.frontends.to_program(MM_RELU).module).trace)
    monkeypatch.setattr(prior, "choices", lambda *_: iter([foreign]))
    assert first_that_agrees(softmax(4, 32)) is None


class Played:
    """A program that says how many seconds its calls take."""

    def __init__(self, *seconds: float) -> None:
        self.seconds = list(seconds)
        self.calls = 0

    def bound(self, inputs: list[Any]) -> Callable[[], Any]:
        def call() -> float:
            self.calls += 1
            return self.seconds[min(self.calls, len(self.seconds)) - 1]

        return call


@pytest.fixture
def _played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instant, "_sample", lambda call: call())


def checked(choice: Any, unscheduled: Any, first: tuple[float, float]) -> instant._Checked:
    return instant._Checked(product(2, 2, 2), [[], []], choice, unscheduled, first)


@pytest.mark.usefixtures("_played")
@pytest.mark.parametrize(
    ("choice", "unscheduled", "kept"),
    [
        (Played(0.004), Played(0.001), False),
        (Played(0.001), Played(0.004), True),
        (Played(0.009, 0.005, 0.001), Played(0.002), True),  # another process disturbed the first calls
        (Played(0.0001, 0.003), Played(0.002), False),  # the first call does not count
    ],
)
def test_the_faster_program_is_kept(choice: Played, unscheduled: Played, kept: bool) -> None:
    prediction = instant._timed(checked(choice, unscheduled, (1.0, 1.0)))
    assert (prediction.trace is not None) == kept
    assert (prediction.us, prediction.unscheduled_us) == (1e6 * choice.seconds[-1], 1e6 * unscheduled.seconds[-1])


@pytest.mark.usefixtures("_played")
def test_an_unscheduled_program_that_is_far_slower_runs_once() -> None:
    choice, unscheduled = Played(0.001), Played(0.001)
    assert instant._timed(checked(choice, unscheduled, (0.1, 0.9))).unscheduled_us == pytest.approx(0.9e6)
    assert choice.calls > unscheduled.calls == 0


def test_nothing_is_predicted_for_another_machine(service: FakeService, client: loopwright.Client) -> None:
    serve(service)
    client.apply(MM_RELU, {"kind": "llvm", "mtriple": "riscv64-linux-gnu", "num-cores": 2}, tune="instant")
    assert outcomes(client) == {"missed"}
    assert client.last_report.functions[0].prediction is None


def test_a_function_of_a_tensor_without_axes_is_predicted(
    alone: loopwright.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefer_choices(monkeypatch)
    builder = relax.BlockBuilder()
    x, factor = relax.Var("x", relax.TensorType((16, 64), "float32")), relax.Var("s", relax.TensorType((), "float32"))
    with builder.function("main", [x, factor]):
        with builder.dataflow():
            result = builder.emit_output(relax.op.exp(builder.emit(relax.op.multiply(x, factor))))
        builder.emit_func_output(result)
    alone.compile(builder.get(), LLVM, tune="instant")
    assert outcomes(alone) == {"predicted"}


def test_a_function_with_a_symbolic_extent_stays_as_it_is(service: FakeService, client: loopwright.Client) -> None:
    serve(service)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((tvm.tirx.Var("n", "int64"), 8), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
    client.compile(builder.get(), LLVM, tune="instant")
    assert outcomes(client) <= {"missed"}


@pytest.mark.parametrize(
    "options",
    [{"tune": "later"}, {"tune": "instant", "lock": "a.lock"}, {"tune": "instant", "shapes": {"n": range(1, 3)}}],
)
def test_what_cannot_be_is_refused(alone: loopwright.Client, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="tune is"):
        alone.compile(two_layers(), LLVM, **options)


def test_the_module_of_a_job_is_scheduled_before_its_first_trial(
    service: FakeService, client: loopwright.Client, mod: tvm.IRModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefer_choices(monkeypatch)
    unscheduled = product(20, 48, 36)
    mod = tvm.IRModule({"known": mod["main"], "new": unscheduled["main"].with_attr("global_symbol", "new")})
    answer = {"format": "tvm-json", "data": module_to_json(mod), "applied": ["known"], "missed": ["new"]}
    service.on("GET", "/api/v1/jobs/job-1", job_json(target=LLVM))
    service.on("GET", "/api/v1/jobs/job-1/module", answer)
    job = client.job("job-1")
    assert structural_equal(job.module(), mod)
    completed = job.module(tune="instant")
    assert structural_equal(completed["known"], mod["known"])
    assert completed["new"].attrs["tirx.is_scheduled"]
    built = tvm.compile(completed, tvm.target.Target(LLVM))
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape, dtype="float32") for shape in ((20, 36), (36, 48)))
    out = tvm.runtime.tensor(np.full((20, 48), np.nan, dtype="float32"))
    built["new"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), out)
    np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-4, atol=1e-4)


def test_torch_compile_needs_no_service(alone: loopwright.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    prefer_choices(monkeypatch)
    monkeypatch.setattr(variant, "_is_better", lambda now, was: True)
    monkeypatch.setattr(loopwright.torch, "_graphs", weakref.WeakValueDictionary())
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(24, 40), nn.ReLU(), nn.Linear(40, 16)).eval()
    compiled = torch.compile(model, backend="loopwright", options={"tune": "instant", "client": alone})
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(9, 24)
            torch.testing.assert_close(compiled(x), model(x), rtol=0, atol=1e-5)
    [outcome] = loopwright.torch.outcomes()
    assert (outcome.state, outcome.job_id) == ("compiled", None)

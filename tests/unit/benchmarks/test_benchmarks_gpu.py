"""What scripts/gpu-check tunes can be built for a GPU, and computes what PyTorch's operator beside it does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
import tvm

from benchmarks.gpu.run import beside_stock, program, tuned_by_stock
from benchmarks.gpu.workloads import CASES, Case
from benchmarks.stock import Found
from loopwright import Job
from tests.support import workloads as programs
from tuner.workload import make_workload
from workers.device import build
from workers.messages import Artifact, BuildRequest


def baseline(case: Case, target: str) -> Artifact:
    workload = make_workload(case.func(), case.name)
    (artifact,) = build.build(BuildRequest(workload.module_json, None, target))
    return artifact


@pytest.mark.whole
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_its_baseline_becomes_a_bound_kernel(case: Case) -> None:
    assert "threadIdx.x" in baseline(case, programs.CUDA).code


@pytest.mark.parametrize(
    "name",
    [
        "bias and GELU",
        *(pytest.param(name, marks=pytest.mark.whole) for name in ("softmax", "layer norm", "convolution")),
    ],
)
def test_pytorch_computes_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products are left out: unscheduled, these would take a minute."""
    monkeypatch.chdir(tmp_path)
    (case,) = (case for case in CASES if name in case.name)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(arg.shape).astype(arg.dtype) for arg in make_workload(case.func(), case.name).args]
    arguments = [tvm.runtime.tensor(array) for array in arrays]
    build.load(baseline(case, programs.LLVM))["main"](*arguments)
    expected = case.reference(torch, *map(torch.from_numpy, arrays[:-1])).numpy()
    np.testing.assert_allclose(arguments[-1].numpy(), expected, rtol=1e-4, atol=1e-4)


SUBMITTED = datetime(2026, 1, 1, tzinfo=UTC)


def job_of(*trials: tuple[float | None, float | None]) -> Job:
    """A job with trials: seconds after its submission, and microseconds a call."""
    found = [
        SimpleNamespace(
            finished_at=None if seconds is None else SUBMITTED + timedelta(seconds=seconds), median_us=microseconds
        )
        for seconds, microseconds in trials
    ]
    return cast(Job, SimpleNamespace(trials=lambda: iter(found)))


def test_times_until_both_are_nearly_as_fast_as_stock() -> None:
    found = Found(trials=[(5.0, None, ""), (10.0, 90e-6, ""), (20.0, 52e-6, ""), (30.0, 50e-6, ""), (40.0, None, "")])
    job = job_of((1.0, None), (None, None), (3.0, 60.0), (5.0, 52.0), (4.0, 51.0), (9.0, 40.0))
    assert beside_stock(found, job, SUBMITTED) == {
        "trials": 5,
        "failed": 2,
        "best_us": pytest.approx(50.0),
        "seconds_until_near": 20.0,
        "loopwright_seconds_until_near": 4.0,
    }


def test_a_program_that_was_never_found_has_no_time() -> None:
    found = Found(trials=[(10.0, 90e-6, "")])
    assert beside_stock(found, job_of((3.0, 100.0)), SUBMITTED)["loopwright_seconds_until_near"] is None
    nothing = beside_stock(Found(trials=[(1.0, None, "")]), job_of((3.0, 100.0)), SUBMITTED)
    assert [nothing[name] for name in ("best_us", "seconds_until_near", "loopwright_seconds_until_near")] == [None] * 3


@pytest.mark.whole
def test_stock_tunes_a_case_and_its_program_can_be_built() -> None:
    """On this machine's processor: what a GPU does with the same calls is for scripts/gpu-check."""
    softmax = CASES[0]
    found = tuned_by_stock(softmax, 4, 600, programs.LLVM)
    assert len(found.trials) == 4
    assert min(seconds for seconds, *_ in found.progress) > 0
    arrays = [np.ones(arg.shape, arg.dtype) for arg in make_workload(softmax.func(), softmax.name).args]
    arguments = [tvm.runtime.tensor(array) for array in arrays]
    program(softmax, found.progress[-1][2], programs.LLVM)["main"](*arguments)
    np.testing.assert_allclose(arguments[-1].numpy(), 1 / arrays[0].shape[1], rtol=1e-5)


def test_stock_that_has_no_time_has_found_nothing() -> None:
    assert tuned_by_stock(CASES[0], 4, 0.01, programs.LLVM) == Found()

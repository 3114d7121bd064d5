"""What scripts/gpu-check tunes can be built for a GPU, and computes what PyTorch's operator beside it does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import tvm

from benchmarks.gpu.workloads import CASES, Case
from tests.support import workloads as programs
from tuner.workload import make_workload
from workers import build
from workers.messages import Artifact, BuildRequest


def baseline(case: Case, target: str) -> Artifact:
    workload = make_workload(case.func(), case.name)
    (artifact,) = build.build(BuildRequest(workload.module_json, None, target).to_json())
    return Artifact.from_json(artifact)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_its_baseline_becomes_a_bound_kernel(case: Case) -> None:
    assert "threadIdx.x" in baseline(case, programs.CUDA).code


@pytest.mark.parametrize("name", ["softmax", "layer norm", "bias and GELU", "convolution"])
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

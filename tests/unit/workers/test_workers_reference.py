"""The kernels that tell what a device reaches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tvm

from loopwright.codegen.machine import kernels
from loopwright.codegen.target import target_from
from tests.support import workloads as programs
from workers.clock import Clock
from workers.device import cuda, reference
from workers.device.build import FUNCTION, load
from workers.messages import Device, DeviceSpeed, ReferenceKernels, ReferenceRequest

TARGET = '{"kind": "llvm"}'


@pytest.fixture(autouse=True)
def _scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def built() -> ReferenceKernels:
    (kernels,) = reference.build(ReferenceRequest(TARGET, 2))
    return kernels


def test_the_chains_do_the_work_that_is_counted(built: ReferenceKernels) -> None:
    threads, lanes = built.shape
    assert built.flop == 2.0 * threads * lanes * reference._ROUNDS
    start = np.random.default_rng(1).random((threads, lanes), dtype=np.float32)
    x, y = tvm.runtime.tensor(start), tvm.runtime.tensor(np.zeros_like(start))
    rounds = 50
    func = kernels.cpu_chains(threads, rounds, lanes // kernels.CHAINS).with_attr("global_symbol", FUNCTION)
    tvm.compile(tvm.IRModule({FUNCTION: func}), target="llvm")[FUNCTION](x, y)
    wanted = start.astype("float64")
    for _ in range(rounds):
        wanted = wanted * 0.999 + 0.001
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-4)


def test_the_copy_copies_all(built: ReferenceKernels) -> None:
    source = np.arange(reference._COPIED, dtype=np.float32)
    x, y = tvm.runtime.tensor(source), tvm.runtime.tensor(np.zeros_like(source))
    load(built.copy)[FUNCTION](x, y)
    np.testing.assert_array_equal(y.numpy(), source)


def test_a_sweep_copies_every_row_in_every_round() -> None:
    threads, width = 2, 4
    row = 3 * kernels.SWEPT_AT_ONCE * width
    func = kernels.cpu_sweeps(threads, width).with_attr("global_symbol", FUNCTION)
    source = np.random.default_rng(2).random((threads, row), dtype=np.float32)
    x, y = tvm.runtime.tensor(source), tvm.runtime.tensor(np.zeros_like(source))
    tvm.compile(tvm.IRModule({FUNCTION: func}), target="llvm")[FUNCTION](x, y, 6)
    np.testing.assert_allclose(y.numpy(), source + 5)


def test_caches_have_rates_unless_smaller_ones_are_as_large() -> None:
    sizes = {"L1": 2**14, "L2": 2**17, "L3": 2**18, "L4": 8}
    (built,) = reference.build(ReferenceRequest(TARGET, 2, sizes))
    assert built.sweeps is not None
    rates = reference.cache_rates(built.sweeps, tvm.cpu())
    assert [(cache.name, cache.bytes) for cache in rates] == [("L1", 2**14), ("L2", 2**17)]
    assert all(cache.bytes_per_s > 0 for cache in rates)


@pytest.mark.whole
def test_peaks_and_a_check_of_this_machine(built: ReferenceKernels) -> None:
    host = Device("llvm", 0)
    *waits, peaks = reference.peaks(host, built)
    assert waits == [Clock.STOP, Clock.START]
    assert isinstance(peaks, DeviceSpeed)
    assert peaks.flops == built.flop / peaks.secs
    assert peaks.bytes_per_s is not None
    assert peaks.bytes_per_s > 0
    assert peaks.caches == ()
    *_, check = reference.check(host, built)
    assert isinstance(check, DeviceSpeed)
    assert check.secs > 0
    assert check.bytes_per_s is None


def test_the_kernels_of_a_gpu_become_cuda_source() -> None:
    target = target_from(programs.CUDA)
    for func in (kernels.gpu_chains(8, 64, 16), kernels.gpu_copy(2**12, 64)):
        source = cuda.source(tvm.IRModule({FUNCTION: func.with_attr("global_symbol", FUNCTION)}), target)
        assert "__global__ void" in source
        assert "blockIdx.x" in source

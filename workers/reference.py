"""What a device reaches at its best, and whether it is as fast as it was: kernels of known work, built by TVM.

Runs in a fork of a measurer's warm child. One kernel keeps independent chains of multiply-adds in registers on all
threads; one copies arrays far larger than the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tvm
from tvm.target import codegen

from tuner import ir
from workers import cuda, host_lock, kernels
from workers.arguments import device_of
from workers.build import FUNCTION, load
from workers.clock import Clock

DTYPE = "float32"
SAMPLES = 200
_COPIES = 5
_ROUNDS = 100_000
"""Half a millisecond: short against a scheduler's slice, so that the best sample is one that nobody disturbed."""
_COPIED = 2**24
"""Elements of four bytes."""
_GPU_BLOCKS, _GPU_THREADS, _GPU_ROUNDS = 4096, 256, 4096


def check(target_json: str, device: str, threads: int) -> Iterator[dict[str, Any] | Clock]:
    """Yield ``{"secs", "dtype", "flops"}``: seconds of the multiply-adds, the best of `SAMPLES` calls, and their speed.

    ``device`` is "cpu" or "cuda:N", ``threads`` what TVM's runtime was told to use.
    """
    bench = _Bench(target_json, device, threads)
    run = bench.arithmetic()
    yield Clock.STOP
    with host_lock.quiet():
        yield Clock.START
        secs = _best(run, SAMPLES)
    yield {"secs": secs, "dtype": DTYPE, "flops": bench.flop / secs}


def peaks(target_json: str, device: str, threads: int) -> Iterator[dict[str, Any] | Clock]:
    """Yield what `check` does, and ``bytes_per_s`` of copying, the best of some calls."""
    bench = _Bench(target_json, device, threads)
    arithmetic, copy = bench.arithmetic(), bench.copy()
    yield Clock.STOP
    with host_lock.quiet():
        yield Clock.START
        secs = _best(arithmetic, SAMPLES)
        bytes_per_s = bench.bytes / _best(copy, _COPIES)
    yield {"secs": secs, "dtype": DTYPE, "flops": bench.flop / secs, "bytes_per_s": bytes_per_s}


class _Bench:
    """The two kernels for one device; ``flop`` and ``bytes`` are those of one call."""

    def __init__(self, target_json: str, device: str, threads: int) -> None:
        self._target = ir.target_from(target_json)
        self._on_gpu = device.startswith("cuda")
        self._device = device_of("cuda", int(device.split(":")[1])) if self._on_gpu else device_of("llvm", 0)
        if self._on_gpu:
            self._chains = kernels.gpu_chains(_GPU_BLOCKS, _GPU_THREADS, _GPU_ROUNDS)
            self._copy = kernels.gpu_copy(_COPIED, _GPU_THREADS)
            self._start = (_GPU_BLOCKS, _GPU_THREADS)
            self.flop = 2.0 * _GPU_BLOCKS * _GPU_THREADS * kernels.CHAINS * _GPU_ROUNDS
        else:
            width = max(1, codegen.llvm_get_vector_width(self._target) // 32)
            self._chains = kernels.cpu_chains(threads, _ROUNDS, width)
            self._copy = kernels.cpu_copy(_COPIED, width)
            self._start = (threads, kernels.CHAINS * width)
            self.flop = 2.0 * threads * kernels.CHAINS * width * _ROUNDS
        self.bytes = 2.0 * 4 * _COPIED

    def arithmetic(self) -> Callable[[], float]:
        """One call of the multiply-adds, in seconds."""
        return self._timed(self._chains, "chains", np.random.default_rng(0).random(self._start, dtype=np.float32))

    def copy(self) -> Callable[[], float]:
        """One copy, in seconds."""
        return self._timed(self._copy, "copy", np.ones(_COPIED, dtype=np.float32))

    def _timed(self, func: tvm.tirx.PrimFunc, name: str, source: np.ndarray[Any, Any]) -> Callable[[], float]:
        mod = tvm.IRModule({FUNCTION: func.with_attr("global_symbol", FUNCTION)})
        if self._on_gpu:
            module = load(cuda.build(mod, self._target), name)
        else:
            module = tvm.compile(mod, target=self._target).mod
        arguments = [tvm.runtime.tensor(array, device=self._device) for array in (source, np.zeros_like(source))]
        timer = module.time_evaluator(FUNCTION, self._device, number=1, repeat=1)
        return lambda: float(timer(*arguments).results[0])


def _best(run: Callable[[], float], calls: int) -> float:
    """The first call is not among those that count."""
    run()
    return min(run() for _ in range(calls))

"""A device's peak speed, and whether the device is still as fast as it was: kernels of known work, built by TVM.

Runs in forks of warm children: `build` once, in one that may start a linker, then `peaks` and `check` in a measurer's.
One kernel keeps independent chains of multiply-adds in registers on all threads; one copies arrays larger than most
caches; one copies again and again within each cache of a CPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import tvm
from tvm.target import codegen

from loopwright.codegen.host import lock as host_lock
from loopwright.codegen.machine import kernels
from loopwright.codegen.target import target_from
from tuner.types import CacheRate
from workers.clock import Clock
from workers.device.arguments import tvm_device
from workers.device.build import FUNCTION, artifact, load
from workers.entry import entry
from workers.messages import Artifact, Device, DeviceSpeed, ReferenceKernels, ReferenceRequest, Sweeps

DTYPE = "float32"
SAMPLES = 20
_COPIES = 2
_BURSTS = 8
_REST_SECONDS = 0.01
_ROUNDS = 100_000
"""Half a millisecond: short against a scheduler's time slice, so that the best sample is an undisturbed one."""
_COPIED = 2**24
"""Elements of four bytes."""
_FILLED = 0.5
"""Of a cache: other data and other processes have their place in it, too. Not tuned."""
_MOST_FILLED = 2**26
"""Bytes of a large cache that are used."""
_SWEPT = 2**26
"""Bytes that a sweep moves, or those of one round if it has more: a millisecond in most caches."""
Loading = Callable[[Artifact], tvm.runtime.Module]
"""Loads an artifact where it runs."""
_GPU_BLOCKS, _GPU_THREADS, _GPU_ROUNDS = 4096, 256, 4096


@entry
def build(request: ReferenceRequest) -> Iterator[ReferenceKernels]:
    target, threads = target_from(request.target_json), request.threads
    shape: tuple[int, ...]
    sweeps = None
    if target.kind.name == "cuda":
        shape = (_GPU_BLOCKS, _GPU_THREADS)
        multiply = kernels.gpu_chains(*shape, _GPU_ROUNDS)
        copy = kernels.gpu_copy(_COPIED, _GPU_THREADS)
        flop = 2.0 * _GPU_BLOCKS * _GPU_THREADS * kernels.CHAINS * _GPU_ROUNDS
    else:
        width = max(1, codegen.llvm_get_vector_width(target) // 32)
        shape = (threads, kernels.CHAINS * width)
        multiply = kernels.cpu_chains(threads, _ROUNDS, width)
        copy = kernels.cpu_copy(_COPIED, width)
        flop = 2.0 * threads * kernels.CHAINS * width * _ROUNDS
        if request.caches:
            kernel = _built(kernels.cpu_sweeps(threads, width), target)
            sweeps = Sweeps(kernel, threads, kernels.SWEPT_AT_ONCE * width, request.caches)
    yield ReferenceKernels(_built(multiply, target), _built(copy, target), shape, flop, sweeps)


def _built(func: tvm.tirx.PrimFunc, target: tvm.target.Target) -> Artifact:
    return artifact(tvm.IRModule({FUNCTION: func.with_attr("global_symbol", FUNCTION)}), target)


@entry
def check(device: Device, kernels: ReferenceKernels) -> Iterator[DeviceSpeed | Clock]:
    """Yield the speed by the multiply-adds alone, the best of many calls."""
    run = timed_chains(kernels, tvm_device(device))
    yield Clock.STOP
    with host_lock.quiet():
        yield Clock.START
        speed = speed_of(run, kernels.flop)
    yield speed


@entry
def peaks(device: Device, kernels: ReferenceKernels) -> Iterator[DeviceSpeed | Clock]:
    """Yield the speed with the rates of the copy and of the caches, the best of some calls."""
    on_device = tvm_device(device)
    run = timed_chains(kernels, on_device)
    copy = timed_copy(kernels, on_device)
    yield Clock.STOP
    with host_lock.quiet():
        yield Clock.START
        speed = speed_of(run, kernels.flop, copy)
        rates = () if kernels.sweeps is None else cache_rates(kernels.sweeps, on_device)
    yield replace(speed, caches=rates)


def cache_rates(sweeps: Sweeps, device: tvm.runtime.Device) -> tuple[CacheRate, ...]:
    """Return the rate within each cache that has room for more than the smaller ones have together."""
    module, rates, smaller = load(sweeps.kernel), list[CacheRate](), 0
    for name, size in sweeps.caches.items():
        filled = min(int(_FILLED * size), _MOST_FILLED)
        row = filled // (2 * 4 * sweeps.threads) // sweeps.step * sweeps.step
        if filled <= smaller or not row:
            continue
        moved = 2 * 4 * sweeps.threads * row
        rounds = max(1, _SWEPT // moved)
        source = np.ones((sweeps.threads, row), dtype=np.float32)
        seconds = _best(_timed(module, source, device, rounds), _COPIES)
        rates.append(CacheRate(name, size, rounds * moved / seconds))
        smaller = size
    return tuple(rates)


def speed_of(run: Callable[[], float], flop: float, copy: Callable[[], float] | None = None) -> DeviceSpeed:
    """Time the multiply-adds, ``flop`` operations a call, and the copy if there is one."""
    secs = _best(run, SAMPLES)
    bytes_per_s = None if copy is None else 2.0 * 4 * _COPIED / _best(copy, _COPIES)
    return DeviceSpeed(secs, DTYPE, flop / secs, bytes_per_s)


def timed_chains(kernels: ReferenceKernels, device: tvm.runtime.Device, loading: Loading = load) -> Callable[[], float]:
    """Return a function that calls the multiply-adds once, on all threads, and returns the seconds."""
    start = np.random.default_rng(0).random(kernels.shape, dtype=np.float32)
    return _timed(loading(kernels.chains), start, device)


def timed_copy(kernels: ReferenceKernels, device: tvm.runtime.Device, loading: Loading = load) -> Callable[[], float]:
    """Return a function that copies once, and returns the seconds."""
    return _timed(loading(kernels.copy), np.ones(_COPIED, dtype=np.float32), device)


def _timed(
    module: tvm.runtime.Module, source: np.ndarray[Any, Any], device: tvm.runtime.Device, *numbers: int
) -> Callable[[], float]:
    """Return a function that calls a kernel once, from one array to another, and returns the seconds."""
    arrays = [tvm.runtime.tensor(array, device=device) for array in (source, np.zeros_like(source))]
    arguments = [*arrays, *numbers]
    timer = module.time_evaluator(FUNCTION, device, number=1, repeat=1)
    return lambda: float(timer(*arguments).results[0])


def _best(run: Callable[[], float], calls: int) -> float:
    """Return the fastest of the calls, which are made in bursts with rests between them.

    On a busy machine the scheduler may leave both ends of a parallel loop on one core; after a rest it chooses anew.
    """
    fastest = float("inf")
    for _ in range(_BURSTS):
        run()
        fastest = min(fastest, *(run() for _ in range(calls)))
        time.sleep(_REST_SECONDS)
    return fastest

"""What a device reaches at its best, and whether it is as fast as it was: kernels of known work, built by TVM.

Runs in forks of a measurer's warm child: `build` once, then `peaks` and `check`. One kernel keeps independent chains of
multiply-adds in registers on all threads; one copies arrays larger than most caches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tvm
from tvm.target import codegen

from loopwright.codegen.target import target_from
from workers import host_lock, kernels
from workers.arguments import device_of
from workers.build import FUNCTION, artifact, load
from workers.clock import Clock

DTYPE = "float32"
SAMPLES = 20
_COPIES = 2
_BURSTS = 8
_REST_SECONDS = 0.01
_ROUNDS = 100_000
"""Half a millisecond: short against a scheduler's slice, so that the best sample is one that nobody disturbed."""
_COPIED = 2**24
"""Elements of four bytes."""
_GPU_BLOCKS, _GPU_THREADS, _GPU_ROUNDS = 4096, 256, 4096


def build(target_json: str, threads: int) -> Iterator[dict[str, Any]]:
    """Yield ``{"chains", "copy", "shape", "flop"}``: two artifacts, and the first one's arguments and operations.

    ``threads`` is what TVM's runtime was told to use.
    """
    target = target_from(target_json)
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
    modules = [tvm.IRModule({FUNCTION: func.with_attr("global_symbol", FUNCTION)}) for func in (multiply, copy)]
    built = [artifact(mod, target) for mod in modules]
    yield {"chains": built[0], "copy": built[1], "shape": list(shape), "flop": flop}


def check(target_kind: str, device_index: int, built: dict[str, Any]) -> Iterator[dict[str, Any] | Clock]:
    """Yield ``{"secs", "dtype", "flops"}``: seconds of the multiply-adds, the best of many calls, and speed."""
    device = device_of(target_kind, device_index)
    run = chains(built, device)
    yield Clock.STOP
    with host_lock.quiet():
        yield Clock.START
        secs = _best(run, SAMPLES)
    yield {"secs": secs, "dtype": DTYPE, "flops": built["flop"] / secs}


def peaks(target_kind: str, device_index: int, built: dict[str, Any]) -> Iterator[dict[str, Any] | Clock]:
    """Yield what `check` does, and ``bytes_per_s`` of copying, the best of some calls."""
    device = device_of(target_kind, device_index)
    run = chains(built, device)
    copy = _timed(built["copy"], np.ones(_COPIED, dtype=np.float32), device)
    yield Clock.STOP
    with host_lock.quiet():
        yield Clock.START
        secs = _best(run, SAMPLES)
        bytes_per_s = 2.0 * 4 * _COPIED / _best(copy, _COPIES)
    yield {"secs": secs, "dtype": DTYPE, "flops": built["flop"] / secs, "bytes_per_s": bytes_per_s}


def chains(built: dict[str, Any], device: tvm.runtime.Device) -> Callable[[], float]:
    """One call of the multiply-adds on all threads, in seconds."""
    start = np.random.default_rng(0).random(built["shape"], dtype=np.float32)
    return _timed(built["chains"], start, device)


def _timed(code: dict[str, Any], source: np.ndarray[Any, Any], device: tvm.runtime.Device) -> Callable[[], float]:
    """One call of a kernel that reads one array and writes another, in seconds."""
    arguments = [tvm.runtime.tensor(array, device=device) for array in (source, np.zeros_like(source))]
    timer = load(code).time_evaluator(FUNCTION, device, number=1, repeat=1)
    return lambda: float(timer(*arguments).results[0])


def _best(run: Callable[[], float], calls: int) -> float:
    """The fastest of the calls, made in bursts with rests between them.

    On a busy machine the scheduler may leave both ends of a parallel loop on one core; after a rest it chooses anew.
    """
    fastest = float("inf")
    for _ in range(_BURSTS):
        run()
        fastest = min(fastest, *(run() for _ in range(calls)))
        time.sleep(_REST_SECONDS)
    return fastest

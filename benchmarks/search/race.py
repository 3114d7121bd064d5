"""The closing race of a cell: every program that was ever the best of a run, and PyTorch's operator, timed together.

They run in rounds, in a new random order each round, so that drift of the machine affects all of them equally, and in
several processes, whose buffers have other addresses. If the machine did not run at full speed before and after a
sample, the sample is taken again, at most `_TRIES` times.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import statistics
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from benchmarks.search.full_speed import FullSpeed
from benchmarks.search.runs import PYTORCH
from benchmarks.search.workloads import WORKLOADS
from loopwright.codegen import host_lock
from loopwright.codegen.functions import write_only
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.threads import OMP_NUM_THREADS, environment
from tuner.types import Failure, TensorInfo
from tuner.workload import make_workload
from workers import child_calls, reference
from workers.arguments import draw, to_device, tvm_device
from workers.build import FUNCTION
from workers.build import load as load_artifact
from workers.clock import Clock
from workers.messages import Artifact, BuildRequest, Device, ReferenceKernels, ReferenceRequest
from workers.walls.levels import Level
from workers.warm_child import WarmChild

T = TypeVar("T")

PROCESSES = 7
ROUNDS = 3
"""In each process."""
_SAMPLE_SECONDS = 0.01
_REST_SECONDS = 0.2
"""Pause before and after PyTorch. Its threads and those of TVM's runtime spin for 0.1 s after their work, and would
occupy each other's cores."""
_WARM_SAMPLES = 30
"""PyTorch runs for this many samples before it is timed, because cores fall asleep during the pause."""
_TRIES = 3
"""Attempts to take a sample at full speed; after that, the last sample counts."""
_FIRST = 3
"""Rounds of a first process, which find the programs that are far too slow."""
_SLOW = 3.0
"""A program this many times slower than the fastest is not raced further: its latency is the best first sample."""


def race(workload: str, programs: dict[str, str], *, pytorch: bool = True) -> dict[str, Any]:
    """Time programs (trace by name) side by side, and PyTorch's operator if ``pytorch``.

    Returns ``{"seconds": {name: median}, "samples": {name: [[…], …]}}``: seconds a call, and samples by process and
    round of the programs that were not far slower than the fastest.
    """
    found = make_workload(WORKLOADS[workload](), workload)
    target_json = host_target()
    threads = json.loads(target_json)["num-cores"]
    builders = [WarmChild([child_calls.BUILD], environment(1), level=Level.NONE) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:

        def build(position: int, trace_json: str) -> dict[str, Any]:
            request = BuildRequest(found.module_json, trace_json, target_json)
            built = child_calls.build(builders[position % threads], request, seconds=60.0)
            return succeeded(built).to_json()

        artifacts = dict(zip(programs, pool.map(build, range(len(programs)), programs.values()), strict=True))
    for builder in builders:
        builder.close()
    args = [info.to_json() for info in found.args]
    outputs = list(write_only(module_from_json(found.module_json)["main"]))
    runner = WarmChild(
        ["benchmarks.search.race", child_calls.REFERENCE],
        {**environment(threads), OMP_NUM_THREADS: str(threads)},
        level=Level.NONE,
    )
    try:
        request = ReferenceRequest(target_json, threads)
        kernels = succeeded(child_calls.build_reference(runner, request, seconds=60.0))
        best = succeeded(child_calls.check(runner, Device("llvm", 0), kernels, seconds=60.0)).secs
        fixed = {"workload": workload, "args": args, "outputs": outputs, "threads": threads}
        fixed |= {"kernel": kernels.to_json(), "best": best, "pytorch": pytorch}

        def session(chosen: dict[str, Any], rounds: int, seed: int) -> dict[str, list[float]]:
            arguments = fixed | {"artifacts": chosen, "rounds": rounds, "seed": seed}
            return dict(runner.call("benchmarks.search.race:timed", arguments, 600.0))

        seconds = {name: min(samples) for name, samples in session(artifacts, _FIRST, 0).items()}
        fastest = min(value for name, value in seconds.items() if name != PYTORCH)
        racing = {name: artifact for name, artifact in artifacts.items() if seconds[name] <= _SLOW * fastest}
        runs = [session(racing, ROUNDS, seed) for seed in range(1, 1 + PROCESSES)]
    finally:
        runner.close()
    samples = {name: [run[name] for run in runs] for name in runs[0]}
    seconds |= {name: statistics.median(itertools.chain(*taken)) for name, taken in samples.items()}
    return {"seconds": seconds, "samples": samples}


def host_target() -> str:
    """Return the target of this machine's CPU, as JSON."""
    return next(device.device_class.target_json for device in child_calls.detect_devices() if device.name == "cpu")


def succeeded(result: T | Failure) -> T:
    """Return a child's answer. Raises RuntimeError for a failure."""
    if isinstance(result, Failure):
        raise RuntimeError(result.message)
    return result


def timed(
    workload: str,
    args: list[Any],
    outputs: list[bool],
    artifacts: dict[str, Any],
    threads: int,
    kernel: dict[str, Any],
    best: float,
    pytorch: bool,
    rounds: int,
    seed: int,
) -> Iterator[dict[str, list[float]] | Clock]:
    """In the child: yield seconds a call by name, one sample a round, with PyTorch's operator if ``pytorch``.

    ``kernel`` are the `ReferenceKernels` as JSON, ``best`` the seconds of their multiply-adds at full speed.
    """
    device = tvm_device(Device("llvm", 0))
    information = [TensorInfo.from_json(info) for info in args]
    inputs = draw(information, outputs, "normal", 0)
    arguments = to_device(inputs, device)
    modules = {name: load_artifact(Artifact.from_json(artifact)) for name, artifact in artifacts.items()}

    def runner(name: str) -> Any:
        function = modules[name].time_evaluator
        return lambda number: float(function(FUNCTION, device, number=number, repeat=1)(*arguments).results[0])

    calls: dict[str, Any] = {name: runner(name) for name in modules}
    if pytorch:
        sys.modules.pop("torch", None)  # warm children keep it out
        with contextlib.suppress(ImportError):
            calls[PYTORCH] = _pytorch(workload, inputs, outputs, modules, arguments, threads)
    yield Clock.STOP
    with host_lock.quiet():
        yield Clock.START
        speed = FullSpeed(reference.timed_chains(ReferenceKernels.from_json(kernel), device), best)
        numbers = {name: max(1, round(_SAMPLE_SECONDS / run(1))) for name, run in calls.items()}
        yield Clock.START

        def taken(name: str) -> float:
            for _ in range(_TRIES):
                speed.wait()
                calls[name](1)  # whoever was before leaves other data in the caches
                seconds = float(calls[name](numbers[name]))
                if speed.now():
                    break
            return seconds

        def rested(name: str) -> float:
            time.sleep(_REST_SECONDS)
            calls[name](_WARM_SAMPLES * numbers[name])
            seconds = float(calls[name](numbers[name]))
            time.sleep(_REST_SECONDS)
            return seconds

        samples: dict[str, list[float]] = {name: [] for name in calls}
        order = np.random.default_rng(seed)
        for _ in range(rounds):
            for name in order.permutation(list(calls)):
                samples[name].append(rested(name) if name == PYTORCH else taken(name))
            yield Clock.START
    yield samples


def _pytorch(
    workload: str, inputs: list[Any], outputs: list[bool], modules: dict[str, Any], arguments: list[Any], threads: int
) -> Any:
    """PyTorch's operator as a timed call. Raises AssertionError if it does not compute what the workload does."""
    from benchmarks.search.pytorch import operator

    call, as_output = operator(
        workload, [array for array, out in zip(inputs, outputs, strict=True) if not out], threads
    )
    next(iter(modules.values()))[FUNCTION](*arguments)
    (wanted,) = (argument.numpy() for argument, out in zip(arguments, outputs, strict=True) if out)
    np.testing.assert_allclose(as_output(call()).reshape(wanted.shape), wanted, rtol=1e-3, atol=1e-3)

    def run(number: int) -> float:
        call()
        started = time.perf_counter()
        for _ in range(number):
            call()
        return (time.perf_counter() - started) / number

    return run

"""The closing race of a task: outputs compared with the unscheduled program's, then interleaved timings.

Runs in one fresh fork of a warm child: all contenders share the process, the inputs and the moment.
"""

from __future__ import annotations

import heapq
import statistics
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
import tvm

from tuner.arrays import DRAWS, Comparison, compare, tolerance
from tuner.types import TensorInfo
from workers import host_lock, threads
from workers.arguments import device_of, draw, infos, to_device
from workers.build import FUNCTION, load
from workers.clock import Clock
from workers.library import find, library_name

SAMPLE_SECONDS = 0.01
ROUNDS = 15
MIN_ROUNDS = 5
RACE_SECONDS = 15.0
"""Slow programs are raced in fewer rounds, but never fewer than `MIN_ROUNDS`."""
HEATS = 3
"""Rounds in which all contenders run; then the best go on."""
FINALISTS = 8
REST_SECONDS = 0.12
"""Before and after the library: its threads and those of TVM's runtime spin for a tenth of a second when their work is
done, and would hold each other's cores."""
BEAT_SECONDS = 1.0
"""Only where a round takes longer is it worth a frame, which costs whatever is being timed a little."""


def race(
    target_kind: str,
    device_index: int,
    args: list[Any],
    outputs: list[bool],
    reference: dict[str, Any],
    contenders: list[dict[str, Any]],
    seed: int,
) -> Iterator[dict[str, Any] | Clock]:
    """Yield ``{"contenders": […], "library": …}``, one entry an artifact, the baseline first.

    An entry is ``{"error": message}`` for a contender that raised, ``{"wrong": message}`` for a wrong result, otherwise
    ``{"run_secs": […], "max_abs_error", "max_rel_error"}``; ``run_secs[i]`` of all entries come from round i, the
    library's from every few rounds. Those of a contender that was not among the best `FINALISTS` in the first `HEATS`
    rounds end there. On cuda an error is raised, not noted.
    ``reference`` is the unscheduled program built for the host. ``library`` is ``{"name", "run_secs"}`` where the
    host's library computes the same (`workers.library`), else None.
    """
    device = device_of(target_kind, device_index)
    information = infos(args)
    expected = load(reference)
    modules = [load(artifact) for artifact in contenders]
    library = None
    entries: list[dict[str, Any]] = [{"max_abs_error": 0.0, "max_rel_error": 0.0} for _ in contenders]
    for number, kind in enumerate(DRAWS):
        inputs = draw(information, outputs, kind, seed + number)
        wanted = _outcome(expected, inputs, tvm.runtime.cpu(0))
        yield Clock.START
        if target_kind == "llvm" and kind == DRAWS[0]:
            library = find(inputs, outputs, wanted)
            yield Clock.START
        for module, entry in zip(modules, entries, strict=True):
            if "error" not in entry and "wrong" not in entry:
                try:
                    _check(module, inputs, wanted, information, device, kind, entry)
                except Exception as error:
                    if target_kind == "cuda":
                        raise  # the context may be dead: nothing that follows in this process would count
                    entry["error"] = f"{type(error).__name__}: {error}"[-2000:]
            yield Clock.START
    racing = [i for i, entry in enumerate(entries) if "error" not in entry and "wrong" not in entry]
    arguments = to_device(draw(information, [False] * len(information), "normal", seed), device)
    threads.settle()
    yield Clock.STOP
    with host_lock.quiet():
        yield Clock.START
        runs = {i: _evaluated(modules[i], arguments, device) for i in racing}
        resting = None if library is None else len(modules)
        if library is not None:
            runs[len(modules)] = _called(library)
        samples = yield from _interleaved(runs, resting, seed)
    for i in racing:
        entries[i]["run_secs"] = samples[i]
    told = None if library is None else {"name": library_name(), "run_secs": samples[len(modules)]}
    yield {"contenders": entries, "library": told}


def _outcome(
    module: tvm.runtime.Module, inputs: list[np.ndarray[Any, Any]], device: tvm.runtime.Device
) -> list[np.ndarray[Any, Any]]:
    """All arguments after one call, inputs included: a program that spoils its inputs is wrong, too."""
    arguments = to_device(inputs, device)
    module[FUNCTION](*arguments)
    device.sync()
    return [argument.numpy() for argument in arguments]


def _check(
    module: tvm.runtime.Module,
    inputs: list[np.ndarray[Any, Any]],
    wanted: list[np.ndarray[Any, Any]],
    information: list[TensorInfo],
    device: tvm.runtime.Device,
    kind: str,
    entry: dict[str, Any],
) -> None:
    got = _outcome(module, inputs, device)
    for position, (result, reference, info) in enumerate(zip(got, wanted, information, strict=True)):
        found: Comparison = compare(result, reference, tolerance(info.dtype))
        entry["max_abs_error"] = max(entry["max_abs_error"], found.max_abs_error)
        entry["max_rel_error"] = max(entry["max_rel_error"], found.max_rel_error)
        if not found.close:
            entry["wrong"] = (
                f"argument {position} differs from the unscheduled program's by up to {found.max_abs_error:.3g} "
                f"({found.max_rel_error:.3g} of its largest value) on {kind} inputs"
            )
            return


def _evaluated(
    module: tvm.runtime.Module, arguments: list[tvm.runtime.Tensor], device: tvm.runtime.Device
) -> Callable[[int], float]:
    """Seconds of a call, the mean of a number of them behind one that is not counted."""

    def run(number: int) -> float:
        timer = module.time_evaluator(FUNCTION, device, number=number, repeat=1)
        return float(timer(*arguments).results[0])

    return run


def _called(call: Callable[[], object]) -> Callable[[int], float]:
    """The same of a Python function."""

    def run(number: int) -> float:
        call()
        started = time.perf_counter()
        for _ in range(number):
            call()
        return (time.perf_counter() - started) / number

    return run


def _interleaved(
    runs: dict[int, Callable[[int], float]], resting: int | None, seed: int
) -> Generator[Clock, None, dict[int, list[float]]]:
    """Return seconds per call of each, one sample a round, in a fresh random order each round.

    Run 0 is the baseline. The one that is ``resting`` before and after takes part in `MIN_ROUNDS` of the rounds, or a
    few more.
    """
    first = {i: run(1) for i, run in runs.items()}
    numbers = {i: max(1, round(SAMPLE_SECONDS / max(seconds, 1e-9))) for i, seconds in first.items()}
    # One more call is made than is counted.
    seconds = {i: (numbers[i] + 1) * first[i] for i in runs}
    final_seconds = sum(seconds[i] for i in _finalists(first, resting))
    rounds = int(np.clip(RACE_SECONDS / max(final_seconds, 1e-9), MIN_ROUNDS, ROUNDS))
    order = np.random.default_rng(seed)
    samples: dict[int, list[float]] = {i: [] for i in runs}
    racing = list(runs)
    for number in range(rounds):
        if number == HEATS:
            racing = _finalists({i: statistics.median(samples[i]) for i in runs}, resting)
        if sum(seconds[i] for i in racing) > BEAT_SECONDS:
            yield Clock.START
        for i in map(int, order.permutation(racing)):
            if i != resting:
                samples[i].append(runs[i](numbers[i]))
            elif number % (rounds // MIN_ROUNDS) == 0:
                time.sleep(REST_SECONDS)
                samples[i].append(runs[i](numbers[i]))
                time.sleep(REST_SECONDS)
    return samples


def _finalists(seconds: dict[int, float], resting: int | None) -> list[int]:
    """The baseline, the one that rests, and the fastest `FINALISTS` of the others."""
    given = [i for i in seconds if i in (0, resting)]
    return given + heapq.nsmallest(FINALISTS, (i for i in seconds if i not in given), key=seconds.__getitem__)

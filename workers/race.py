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
from workers.measure import LONG_SECONDS, Calls

SAMPLE_SECONDS = 0.01
ROUNDS = 15
MIN_ROUNDS = 5
RACE_SECONDS = 15.0
"""Slow programs are raced in fewer rounds, but never fewer than `MIN_ROUNDS`."""
HEATS = 3
"""Rounds in which all contenders run; then the best go on."""
FINALISTS = 8
FAR_SLOWER = 2.0
"""A baseline so many times as slow as the fastest ends with the heats, too, where all rounds of it alone would take
longer than the race may."""
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
    rounds end there, and so do the baseline's where it is slow (`FAR_SLOWER`). On cuda an error is raised, not noted.
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
        runs = {i: _evaluated(Calls(modules[i], device, arguments)) for i in racing}
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


def _evaluated(calls: Calls) -> Callable[[int], float]:
    """Seconds of a call: the mean of a number of them behind one that is not counted, or, of 0, one as it comes."""
    return lambda number: calls.mean(number) if number else calls.cold()


def _called(call: Callable[[], object]) -> Callable[[int], float]:
    """The same of a Python function."""

    def run(number: int) -> float:
        if number:
            call()
        started = time.perf_counter()
        for _ in range(max(1, number)):
            call()
        return (time.perf_counter() - started) / max(1, number)

    return run


def _interleaved(
    runs: dict[int, Callable[[int], float]], resting: int | None, seed: int
) -> Generator[Clock, None, dict[int, list[float]]]:
    """Return seconds per call of each, one sample a round, in a fresh random order each round.

    A call that takes longer than `LONG_SECONDS` is a sample for itself. Run 0 is the baseline. The one that is
    ``resting`` before and after takes part in `MIN_ROUNDS` of the rounds, or a few more.
    """
    first = {i: _first(run) for i, run in runs.items()}
    numbers = {
        i: 0 if seconds > LONG_SECONDS else max(1, round(SAMPLE_SECONDS / max(seconds, 1e-9)))
        for i, seconds in first.items()
    }
    # One more call is made than is counted.
    seconds = {i: (numbers[i] + 1) * first[i] for i in runs}

    def lasting(figures: dict[int, float]) -> list[int]:
        """Who runs after the heats, of those whose seconds per call are given."""
        fastest = heapq.nsmallest(FINALISTS, (i for i in figures if i not in (0, resting)), key=figures.__getitem__)
        slow = ROUNDS * seconds[0] > RACE_SECONDS and any(figures[0] > FAR_SLOWER * figures[i] for i in fastest)
        return [i for i in figures if i in fastest or i == resting or (i == 0 and not slow)]

    final_seconds = sum(seconds[i] for i in lasting(first))
    rounds = int(np.clip(RACE_SECONDS / max(final_seconds, 1e-9), MIN_ROUNDS, ROUNDS))
    order = np.random.default_rng(seed)
    samples: dict[int, list[float]] = {i: [] for i in runs}
    racing = list(runs)
    for number in range(rounds):
        if number == HEATS:
            racing = lasting({i: statistics.median(samples[i]) for i in runs})
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


def _first(run: Callable[[int], float]) -> float:
    """Seconds per call, about: of one that is not the first, unless that takes long."""
    seconds = run(0)
    return seconds if seconds > LONG_SECONDS else run(1)

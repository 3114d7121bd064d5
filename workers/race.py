"""The closing race of a task: outputs compared with the unscheduled program's, then interleaved timings.

Runs in one fresh fork of a warm child: all contenders share the process, the inputs and the moment.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import tvm

from tuner.arrays import DRAWS, Comparison, compare, tolerance
from tuner.types import TensorInfo
from workers import host_lock
from workers.arguments import device_of, draw, infos, to_device
from workers.build import FUNCTION, load
from workers.clock import Clock

SAMPLE_SECONDS = 0.01
ROUNDS = 15
MIN_ROUNDS = 5
RACE_SECONDS = 15.0
"""Slow programs are raced in fewer rounds, but never fewer than `MIN_ROUNDS`."""
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
    """Yield ``{"contenders": […]}``, one entry an artifact, the baseline first.

    An entry is ``{"error": message}`` for a contender that raised, ``{"wrong": message}`` for a wrong result, otherwise
    ``{"run_secs": […], "max_abs_error", "max_rel_error"}``; ``run_secs[i]`` of all entries come from round i. On cuda
    an error is raised, not noted.
    ``reference`` is the unscheduled program built for the host.
    """
    device = device_of(target_kind, device_index)
    information = infos(args)
    expected = load(reference, "reference")
    modules = [load(artifact, f"contender{i}") for i, artifact in enumerate(contenders)]
    entries: list[dict[str, Any]] = [{"max_abs_error": 0.0, "max_rel_error": 0.0} for _ in contenders]
    for number, kind in enumerate(DRAWS):
        inputs = draw(information, outputs, kind, seed + number)
        wanted = _outcome(expected, inputs, tvm.runtime.cpu(0))
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
    yield Clock.STOP
    with host_lock.quiet():
        yield Clock.START
        samples = yield from _interleaved(modules, racing, arguments, device, seed)
    for i in racing:
        entries[i]["run_secs"] = samples[i]
    yield {"contenders": entries}


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


def _interleaved(
    modules: list[tvm.runtime.Module],
    racing: list[int],
    arguments: list[tvm.runtime.Tensor],
    device: tvm.runtime.Device,
    seed: int,
) -> Generator[Clock, None, dict[int, list[float]]]:
    """Return seconds per call of each racing module, one sample a round, in a fresh random order each round."""

    def run(i: int, number: int) -> float:
        timer = modules[i].time_evaluator(FUNCTION, device, number=number, repeat=1)
        return float(timer(*arguments).results[0])

    first = {i: run(i, 1) for i in racing}
    numbers = {i: max(1, round(SAMPLE_SECONDS / max(seconds, 1e-9))) for i, seconds in first.items()}
    # The evaluator makes one more call than it counts.
    round_seconds = sum((numbers[i] + 1) * first[i] for i in racing)
    rounds = int(np.clip(RACE_SECONDS / max(round_seconds, 1e-9), MIN_ROUNDS, ROUNDS))
    order = np.random.default_rng(seed)
    samples: dict[int, list[float]] = {i: [] for i in racing}
    for _ in range(rounds):
        if round_seconds > BEAT_SECONDS:
            yield Clock.START
        for i in order.permutation(racing):
            samples[int(i)].append(run(int(i), numbers[int(i)]))
    return samples

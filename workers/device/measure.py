"""Timing of candidates. Runs in a fork of a warm child, one fork for a batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tvm

from loopwright.codegen.host import lock as host_lock
from loopwright.codegen.kinds import FailureKind, Stage
from tuner.types import Failure
from workers.clock import Clock
from workers.device.arguments import draw, to_device, tvm_device
from workers.device.build import FUNCTION, load, with_packed_weight
from workers.device.device_state import state_reader
from workers.entry import entry
from workers.error_text import raised
from workers.messages import Device, MeasureBatch, MeasureProgress, Samples

SAMPLES = 5
SAMPLE_SECONDS = 0.002
"""A sample, except for the first, is the mean of as many calls as take so long: long against the jitter of the clock
and of the thread pool. A single call is not: of a convolution's programs of some tens of microseconds on two threads,
one call in ten took over 2.5 times the usual."""

SLOW_SECONDS = 0.02
"""If a call takes so long, the first one counts in spite of cold caches and threads, and three samples are enough."""
_SLOW_SAMPLES = 3

LONG_SECONDS = 0.5
"""A single call that takes so long is a sample: jitter is small against it, and the deadline is near."""

_AGREE = 1.1
"""Two samples agree if their ratio is no larger. Samples of a disturbed moment hardly ever agree."""


@entry
def measure(device: Device, batch: MeasureBatch) -> Iterator[MeasureProgress | Clock]:
    """Load all candidates of a batch, then time them, and yield the progress.

    A candidate that is slower than its cutoff gets fewer samples: its rank is known well enough. On cuda an error ends
    the batch, because the context may be dead.
    """
    on_device = tvm_device(device)
    arguments = to_device(draw(batch.args, [False] * len(batch.args), "normal", 0), on_device)
    modules: dict[int, tvm.runtime.Module] = {}
    for position, candidate in enumerate(batch.candidates):
        yield MeasureProgress(position)
        try:
            modules[position] = load(candidate.code)
            modules[position][FUNCTION]  # resolves the function now, so that this does not disturb a timing
        except Exception as error:
            modules.pop(position, None)
            yield MeasureProgress(position, crash(error, Stage.RUN))
            if device.kind == "cuda":
                return
    state = state_reader(device)
    yield Clock.STOP
    # One lock for all candidates: running builds are waited for once.
    with host_lock.quiet():
        for position, module in modules.items():
            yield MeasureProgress(position)
            try:
                packed = with_packed_weight(module, batch.candidates[position].code, arguments, on_device)
                calls = Calls(module, on_device, packed)
                run_secs = sample(calls.cold, calls.mean, batch.candidates[position].cutoff)
                yield MeasureProgress(position, Samples(tuple(run_secs), state()))
            except Exception as error:
                yield MeasureProgress(position, crash(error, Stage.RUN))
                if device.kind == "cuda":
                    return


def crash(error: Exception, stage: Stage) -> Failure:
    """Return the failure of a program that raised an exception."""
    return Failure(stage, FailureKind.CRASH, raised(type(error).__name__, str(error)))


class Calls:
    """Timed calls of a loaded program, in seconds."""

    def __init__(self, module: tvm.runtime.Module, device: tvm.runtime.Device, arguments: Sequence[Any]) -> None:
        self._module = module
        self._device = device
        self._arguments = arguments

    def cold(self) -> float:
        """Time one call, with cold caches and threads."""
        function = self._module[FUNCTION]
        self._device.sync()
        started = time.perf_counter()
        function(*self._arguments)
        self._device.sync()
        return time.perf_counter() - started

    def mean(self, number: int) -> float:
        """Return the mean of ``number`` calls after one call that does not count."""
        timer = self._module.time_evaluator(FUNCTION, self._device, number=number, repeat=1)
        return float(timer(*self._arguments).results[0])


def sample(cold: Callable[[], float], mean: Callable[[int], float], cutoff: float | None) -> list[float]:
    """Return seconds per call: 1 sample of a long program, 3 of a slow one, otherwise `SAMPLES`.

    Sampling ends early if the best two samples agree that the program is slower than the cutoff. One sample is not
    enough: it may be a hundred times too slow if the machine was disturbed. ``cold`` and ``mean`` are like those of
    `Calls`.
    """
    samples = [cold()]
    if samples[0] > LONG_SECONDS:
        return samples
    if samples[0] <= SLOW_SECONDS:
        samples = [mean(1) or mean(1000)]  # a call may be shorter than the clock's resolution
    while True:
        least, *others = sorted(samples)
        slow = least > SLOW_SECONDS
        beyond = cutoff is not None and least > cutoff and bool(others) and others[0] <= _AGREE * least
        if beyond or len(samples) >= (_SLOW_SAMPLES if slow else SAMPLES):
            return samples
        samples.append(cold() if slow else mean(max(1, round(SAMPLE_SECONDS / least))))

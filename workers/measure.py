"""Taking the time of candidates. Runs in a fork of a warm child, one fork for a batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tvm

from workers import host_lock, threads
from workers.arguments import device_of, draw, infos, to_device
from workers.build import FUNCTION, load
from workers.clock import Clock

SAMPLES = 5
SAMPLE_SECONDS = 0.002
"""A sample, but for the first, is the mean of as many calls as fill this: long against the clock's and the pool's
jitter. A call alone is not: of a convolution's programs of some tens of microseconds on two threads, one call in ten
took over 2.5 times the usual."""

SLOW_SECONDS = 0.02
"""Of calls that take this long the first already tells, cold as caches and threads are; and three samples will do."""
_SLOW_SAMPLES = 3

LONG_SECONDS = 0.5
"""A call that takes this long is its own sample: jitter is small beside it, and the deadline is near."""

_AGREE = 1.1
"""Samples no farther apart say the same. Those of a disturbed moment hardly ever are as near."""


def measure(
    target_kind: str, device_index: int, args: list[Any], candidates: list[dict[str, Any]]
) -> Iterator[dict[str, Any] | Clock]:
    """For each candidate yield ``{"candidate": position, "run_secs": […]}`` or ``{"candidate": position, "error"}``.

    A candidate is ``{"artifact", "cutoff"}``. One that proves slower than ``cutoff`` (seconds, or None) is not sampled
    further: its place is known well enough. On cuda an error ends the batch, for the context may be dead.
    ``{"candidate": position}`` alone says whom a crash would come from.
    """
    device = device_of(target_kind, device_index)
    information = infos(args)
    arguments = to_device(draw(information, [False] * len(information), "normal", 0), device)
    modules: dict[int, tvm.runtime.Module] = {}
    for position, candidate in enumerate(candidates):
        yield {"candidate": position}
        try:
            modules[position] = load(candidate["artifact"])
            modules[position][FUNCTION]  # what is still to be done for the first call is not to disturb any timing
        except Exception as error:
            modules.pop(position, None)
            yield _failed(position, error)
            if target_kind == "cuda":
                return
    yield Clock.STOP
    # Once for all: the builds that must end before a timing starts are waited for once.
    with host_lock.quiet():
        for position, module in modules.items():
            yield {"candidate": position}
            calls = Calls(module, device, arguments)
            try:
                run_secs = sample(calls.cold, calls.mean, candidates[position]["cutoff"])
                yield {"candidate": position, "run_secs": run_secs}
            except Exception as error:
                yield _failed(position, error)
                if target_kind == "cuda":
                    return


def _failed(position: int, error: Exception) -> dict[str, Any]:
    return {"candidate": position, "error": f"{type(error).__name__}: {error}"[-2000:]}


class Calls:
    """Calls of a loaded program whose time is taken, in seconds."""

    def __init__(self, module: tvm.runtime.Module, device: tvm.runtime.Device, arguments: Sequence[Any]) -> None:
        self._module = module
        self._device = device
        self._arguments = arguments

    def cold(self) -> float:
        """One call, as it comes."""
        function = self._module[FUNCTION]
        self._device.sync()
        started = time.perf_counter()
        function(*self._arguments)
        self._device.sync()
        seconds = time.perf_counter() - started
        threads.settle()
        return seconds

    def mean(self, number: int) -> float:
        """The mean of ``number`` calls after one call that is not counted."""
        timer = self._module.time_evaluator(FUNCTION, self._device, number=number, repeat=1)
        return float(timer(*self._arguments).results[0])


def sample(cold: Callable[[], float], mean: Callable[[int], float], cutoff: float | None) -> list[float]:
    """Seconds per call: 1 sample of a long program, 3 of a slow one, otherwise `SAMPLES`.

    There are fewer where the best two agree that the program is beyond the cutoff: one alone may be a hundred times too
    slow, when the machine was elsewhere. ``cold`` and ``mean`` are as those of `Calls`.
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

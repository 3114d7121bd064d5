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
"""A sample is the mean of as many calls as fill this: long against the clock's and the pool's jitter. A call alone is
not: of a convolution's programs of some tens of microseconds on two threads, one call in ten took over 2.5 times the
usual."""

SLOW_SECONDS = 0.02
"""Of calls that take this long the first already tells, cold as caches and threads are; and three samples will do."""

LONG_SECONDS = 0.5
"""A call that takes this long is its own sample: jitter is small beside it, and the deadline is near."""


def measure(
    target_kind: str, device_index: int, args: list[Any], candidates: list[dict[str, Any]]
) -> Iterator[dict[str, Any] | Clock]:
    """For each candidate yield ``{"candidate": position, "run_secs": […]}`` or ``{"candidate": position, "error"}``.

    A candidate is ``{"artifact", "cutoff"}``. One slower than ``cutoff`` (seconds, or None) after a sample or two is
    not sampled further: its place is known well enough. On cuda an error ends the batch, for the context may be dead.
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
    """Seconds per call: 1 or 2 samples for a program beyond the cutoff, 1 for a long one, otherwise 3 or `SAMPLES`.

    ``cold`` and ``mean`` are as those of `Calls`. A cold call is believed where it is slow.
    """
    first = cold()
    if first > LONG_SECONDS or (cutoff is not None and first > max(SLOW_SECONDS, 3 * cutoff)):
        return [first]
    warm = mean(1)
    number = max(1, round(SAMPLE_SECONDS / max(warm, 1e-9)))
    samples = [warm if number == 1 else mean(number)]
    slow = warm > SLOW_SECONDS
    while len(samples) < (3 if slow else SAMPLES):
        # Short calls are easily disturbed: one sample tells only what is far beyond the cutoff.
        if cutoff is not None and min(samples) > (2 * cutoff if len(samples) == 1 and not slow else cutoff):
            break
        samples.append(mean(number))
    return samples

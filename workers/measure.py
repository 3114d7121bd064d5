"""Taking the time of candidates. Runs in a fork of a warm child, one fork for a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tvm

from workers import host_lock
from workers.arguments import device_of, draw, infos, to_device
from workers.build import FUNCTION, load
from workers.clock import Clock

SAMPLES = 5
SAMPLE_SECONDS = 0.004
"""A sample is the mean of as many calls as fill this: long against the clock's and the pool's jitter."""

LONG_SECONDS = 0.5
"""A call that takes this long is its own sample: jitter is small beside it, and the deadline is near."""


def measure(
    target_kind: str, device_index: int, args: list[Any], candidates: list[dict[str, Any]]
) -> Iterator[dict[str, Any] | Clock]:
    """For each candidate yield ``{"candidate": position, "run_secs": […]}`` or ``{"candidate": position, "error"}``.

    A candidate is ``{"artifact", "cutoff"}``. One slower than ``cutoff`` (seconds, or None) after the first sample is
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
            modules[position] = load(candidate["artifact"], f"candidate{position}")
            modules[position][FUNCTION]  # generates machine code, which is not to disturb anybody's timing
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

            def run(number: int, module: tvm.runtime.Module = module) -> float:
                timer = module.time_evaluator(FUNCTION, device, number=number, repeat=1)
                return float(timer(*arguments).results[0])

            try:
                yield {"candidate": position, "run_secs": sample(run, candidates[position]["cutoff"])}
            except Exception as error:
                yield _failed(position, error)
                if target_kind == "cuda":
                    return


def _failed(position: int, error: Exception) -> dict[str, Any]:
    return {"candidate": position, "error": f"{type(error).__name__}: {error}"[-2000:]}


def sample(run: Callable[[int], float], cutoff: float | None) -> list[float]:
    """Seconds per call: 1 sample for a program beyond the cutoff or a long one, otherwise `SAMPLES`.

    ``run(n)`` returns the mean of n calls after one call that is not counted.
    """
    first = run(1)
    if first > LONG_SECONDS or (cutoff is not None and first > 2 * cutoff):
        return [first]
    number = max(1, round(SAMPLE_SECONDS / max(first, 1e-9)))
    samples = [run(number)]
    if cutoff is not None and samples[0] > cutoff:
        return samples
    return samples + [run(number) for _ in range(SAMPLES - 1)]

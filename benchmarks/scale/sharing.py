"""Small jobs beside a large one, through a real service on this machine."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tvm

from benchmarks.search.workloads import product
from loopwright import Client, Job

SMALL, LARGE = 16, 2_000
"""Trials."""
_WARM_TRIALS = 40
"""Of the large job, before others come."""


def measured(client: Client, jobs: int) -> dict[str, Any]:
    """Return seconds from submission to end, of small jobs alone and beside a large one, and of its cancellation."""
    numbers = iter(range(1000))

    def small() -> float:
        return _seconds(client.submit(_function(next(numbers)), max_trials=SMALL))

    small()  # what is done once for all
    alone = [small() for _ in range(5)]
    large = client.submit(product(1024, 1024, 1024), max_trials=LARGE)
    while large.refresh().progress.trials < _WARM_TRIALS:
        time.sleep(0.2)
    one_by_one = [small() for _ in range(5)]
    with ThreadPoolExecutor(jobs) as pool:
        at_once = list(pool.map(lambda _: small(), range(jobs)))
    answered = [_seconds(client.submit(_function(1), max_trials=SMALL)) for _ in range(5)]
    shared = large.refresh().progress.trials
    started = time.monotonic()
    large.cancel()
    large.wait(progress=False)
    return {
        "alone_s": alone,
        "one_by_one_s": one_by_one,
        "at_once_s": at_once,
        "answered_s": answered,
        "large_trials": shared,
        "cancel_s": time.monotonic() - started,
    }


def _function(number: int) -> tvm.tirx.PrimFunc:
    """Products of about one size, all different."""
    return product(112 + 4 * (number % 8), 96 + 8 * (number // 8), 128)


def _seconds(job: Job) -> float:
    started = time.monotonic()
    job.wait(progress=False)
    assert job.state == "succeeded", job.error
    return time.monotonic() - started


def over(measured: list[float], alone: list[float]) -> list[float]:
    """Return each as a multiple of the median alone."""
    usual = statistics.median(alone)
    return [seconds / usual for seconds in measured]

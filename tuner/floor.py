"""The least time that a call can take on a machine, whoever says that it took less.

Another process than the program's holds the clock, but a program that has taken over its process may do nothing when
it is called. What is faster than any program could be is no measurement.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from loopwright.codegen.kinds import FailureKind, Stage
from tuner.errors import RaceFailed
from tuner.ports import Fleet, Meanwhile, Raced, RaceRequest, RaceResult
from tuner.types import Failure, Workload

CALL_SECONDS = 1e-9
"""Of a call that does nothing: a few cycles. Functions of one element take 4.4 ns in TVM's evaluator on an AMD EPYC."""
_MARGIN = 10.0
"""How much faster than by the peaks a call may be. They may have been measured on a busy machine; and operations are
counted as the function is written, while a schedule may leave out those on zeros. Not tuned."""


def least_seconds(workload: Workload, outputs: Sequence[bool], peak_flops: float | None) -> float:
    """Return the least seconds of a call of a function.

    Args:
        outputs: for each argument, whether the function only writes it.
        peak_flops: operations per second in float32 that were measured on the machine; None if none were.
    """
    if peak_flops is None:
        return CALL_SECONDS
    operation = workload.operation
    flop = operation.flop or 0.0 if operation.dtype == "float32" else 0.0
    written = sum(info.bytes for info, output in zip(workload.args, outputs, strict=True) if output)
    # A vector unit that does four operations on a lane of four bytes in a cycle stores it once or twice.
    return max(CALL_SECONDS, max(flop, written) / peak_flops / _MARGIN)


def impossible(run_secs: Sequence[float], least: float, stage: Stage) -> Failure | None:
    """Return the failure of a program whose median is below the least seconds, or None."""
    median = statistics.median(run_secs)
    if median >= least:
        return None
    message = (
        f"its measurement says {median:.3g} s a call, and no program of this function takes less than {least:.3g} s on "
        "this device: it does not do its work whenever it is called"
    )
    return Failure(stage, FailureKind.WRONG_RESULT, message)


def race(fleet: Fleet, request: RaceRequest, meanwhile: Meanwhile, least: float) -> RaceResult:
    """Race programs, and return the failure of each contender whose median is below the least seconds in its place.

    Raises RaceFailed if the unscheduled program cannot be run, or if its own median is below them. Without yardsticks
    it is not timed.
    """
    return plausible(fleet.race(request, meanwhile), least)


def plausible(result: RaceResult, least: float) -> RaceResult:
    """Return the result of a race as `race` does. Raises RaceFailed as it does."""
    baseline = result.baseline.run_secs
    if baseline and (failure := impossible(baseline, least, Stage.CERTIFY)):
        raise RaceFailed(failure.message)
    return replace(result, contenders={key: _possible(entry, least) for key, entry in result.contenders.items()})


def _possible(entry: Raced | Failure, least: float) -> Raced | Failure:
    return entry if isinstance(entry, Failure) else impossible(entry.run_secs, least, Stage.CERTIFY) or entry

"""Decide whether a certified best still holds: race it again with the unscheduled program, on the fleet.

The decision is about the slowdown that the machine does not explain: the best's time now divided by the time in the
certificate, divided by the slowdown of the unscheduled program. `service.fleet.health` detects machines that are slower
in general.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from loopwright.codegen.kinds import RecheckVerdict
from tuner.errors import RaceFailed
from tuner.floor import least_seconds, race
from tuner.ports import Fleet, Meanwhile, RaceRequest
from tuner.races.sequential import DEFAULT, Estimate, SequentialConfig, Verdict, decide, estimate
from tuner.types import Failure, Workload

MAX_SLOWDOWN = 0.1
"""More than one certificate differs from the next on a machine that others use, too."""
_BEST = "best"


@dataclass(frozen=True, slots=True)
class Certified:
    """A certified best: its program, and the seconds per call in its certificate."""

    workload: Workload
    outputs: tuple[bool, ...]
    trace_json: str
    best: float
    baseline: float


@dataclass(frozen=True, slots=True)
class RecheckResult:
    """Seconds a call now; None if they were not measured. ``slowdown`` is 1 where nothing has changed.

    ``system`` is that of `tuner.ports.RaceResult`.
    """

    verdict: RecheckVerdict
    rounds: int
    slowdown: Estimate | None = None
    best: float | None = None
    baseline: float | None = None
    message: str | None = None
    system: str | None = None


_VERDICTS = {
    Verdict.BELOW: RecheckVerdict.HOLDS,
    Verdict.ABOVE: RecheckVerdict.REGRESSION,
    Verdict.UNCLEAR: RecheckVerdict.UNCLEAR,
}


def recheck(
    certified: Certified,
    fleet: Fleet,
    *,
    meanwhile: Meanwhile,
    peak_flops: float | None = None,
    max_slowdown: float = MAX_SLOWDOWN,
    config: SequentialConfig = DEFAULT,
) -> RecheckResult:
    """Race a best with the unscheduled program until it is clear whether it is slower by ``max_slowdown``.

    Each round checks the results on new inputs, in a fresh process. ``peak_flops`` is as of
    `tuner.floor.least_seconds`.
    """
    least = least_seconds(certified.workload, certified.outputs, peak_flops)
    bests: list[float] = []
    baselines: list[float] = []
    slowdowns: list[float] = []
    verdict = Verdict.UNCLEAR
    while len(slowdowns) < config.looks[-1]:
        request = RaceRequest(
            module_json=certified.workload.module_json,
            args=certified.workload.args,
            outputs=certified.outputs,
            contenders={_BEST: certified.trace_json},
            math=certified.workload.math,
        )
        try:
            result = race(fleet, request, meanwhile, least)
        except RaceFailed as error:
            return RecheckResult(RecheckVerdict.UNCLEAR, len(slowdowns), message=f"nothing to compare with: {error}")
        raced = result.contenders[_BEST]
        if isinstance(raced, Failure):
            return RecheckResult(RecheckVerdict.FAILED, len(slowdowns), message=raced.message, system=result.system)
        best, baseline = statistics.median(raced.run_secs), statistics.median(result.baseline.run_secs)
        bests.append(best)
        baselines.append(baseline)
        slowdowns.append(best / certified.best / max(1.0, baseline / certified.baseline))
        if len(slowdowns) in config.looks:
            verdict = decide(slowdowns, 1.0 + max_slowdown, config)
            if verdict is not Verdict.UNCLEAR:
                break
    return RecheckResult(
        _VERDICTS[verdict],
        len(slowdowns),
        estimate(slowdowns),
        statistics.median(bests),
        statistics.median(baselines),
        system=result.system,
    )

"""Certification of a task's winner: the contenders, the winner, and the evidence."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Iterator, Sequence

from loopwright.codegen.arrays import DRAWS, tolerance
from loopwright.codegen.kinds import Values
from loopwright.codegen.math_mode import TF32
from tuner.closing import RacePlan
from tuner.errors import RaceFailed
from tuner.floor import least_seconds, plausible
from tuner.ports import Fleet, Meanwhile, Raced, RaceRequest, RaceResult, nothing_meanwhile
from tuner.races.grade import graded
from tuner.types import BASELINE, Certificate, Failure, Measured, Outcome, RunnerUp, Trial, Workload, speedup

TIE = 0.01
"""Of a median: what a tie may cost at most. Not tuned."""
_BY_CONSENT = "; factors of float32 may be rounded to TF32 (math tf32), the reference rounds none"
_WITHOUT_NAN = "; no NaN, of which the function's results depend on the order of comparisons"
_SMALL = "; the matrix of a recurrent layer scaled, so that rounding errors do not grow from step to step"


def certify_all(
    fleet: Fleet, certifications: Sequence[Certification], meanwhile: Meanwhile = nothing_meanwhile
) -> Iterator[Certificate | RaceFailed]:
    """Run the first race of each task, in the same processes if there are several, and what races follow from them.

    Yields RaceFailed for a task whose unscheduled program itself cannot be run.
    """
    results = fleet.race_all([each.request for each in certifications], meanwhile)
    for certification, result in zip(certifications, results, strict=True):
        yield _certified(fleet, certification, result, meanwhile)


def _certified(
    fleet: Fleet, certification: Certification, result: RaceResult | RaceFailed, meanwhile: Meanwhile
) -> Certificate | RaceFailed:
    while not isinstance(result, RaceFailed):
        try:
            certificate = certification.conclude(result)
        except RaceFailed as error:
            return error
        if certificate is not None:
            return certificate
        [result] = fleet.race_all([certification.request], meanwhile)
    return result


class Certification:
    """The races of a task: of the best measured trials with the baseline, as planned.

    A contender with a wrong result or a failure is rejected. If all contenders of a race are rejected, the next best
    trials are raced, until one contender is accepted or no trial is left. ``first_choice`` is a trial that nothing has
    measured yet, and races with them. ``peak_flops`` is as of `tuner.floor.least_seconds`.
    """

    def __init__(
        self,
        workload: Workload,
        outputs: tuple[bool, ...],
        trials: Sequence[Trial],
        *,
        plan: RacePlan,
        peak_flops: float | None = None,
        first_choice: Trial | None = None,
    ) -> None:
        self._workload = workload
        self._outputs = outputs
        self._plan = plan
        self._least = least_seconds(workload, outputs, peak_flops)
        self._rejected: dict[str, Failure] = {}
        self._ranked = _ranking(trials, 8 * plan.contenders) + ([first_choice] if first_choice else [])
        self.outcomes: dict[str, Outcome] = {}
        """What the races say of each program in them, as of a trial, by candidate hash."""

    @property
    def request(self) -> RaceRequest:
        """The next race."""
        return RaceRequest(
            module_json=self._workload.module_json,
            args=self._workload.args,
            outputs=self._outputs,
            contenders={t.candidate.hash: t.candidate.trace_json for t in self._chosen if t.candidate.trace_json},
            repeats=self._plan.repeats,
            math=self._workload.math,
            seconds=self._plan.seconds,
        )

    @property
    def _chosen(self) -> list[Trial]:
        return [trial for trial in self._ranked if trial.candidate.hash not in self._rejected][: self._plan.contenders]

    def conclude(self, result: RaceResult) -> Certificate | None:
        """Return the evidence that a race gave; None if another race is to follow.

        Raises RaceFailed if the time of the unscheduled program is impossible.
        """
        result = plausible(result, self._least)
        last = not self._chosen
        self.outcomes |= {
            key: entry
            if isinstance(entry, Failure)
            else Measured(entry.run_secs, result.worker, sandbox=result.sandbox, device_state=result.device_state)
            for key, entry in (*result.contenders.items(), (BASELINE.hash, result.baseline))
        }
        self._rejected |= {key: entry for key, entry in result.contenders.items() if isinstance(entry, Failure)}
        if not last and not _accepted(result):
            return None
        return _certificate(result, self._workload, self._outputs, self._rejected)


def _ranking(trials: Sequence[Trial], count: int) -> list[Trial]:
    measured = [t for t in trials if isinstance(t.outcome, Measured) and t.candidate.trace_json is not None]
    return heapq.nsmallest(count, measured, key=lambda trial: trial.outcome.least)  # type: ignore[union-attr]


def _accepted(result: RaceResult) -> dict[str, Raced]:
    return {key: entry for key, entry in result.contenders.items() if isinstance(entry, Raced)}


def winner(result: RaceResult) -> str | None:
    """Return the hash of the contender that is published, or None if the fastest does not beat the baseline.

    Contenders that did not run in all rounds cannot win. Those that the race cannot tell from the one with the lowest
    median are tied with it, and of these the one with the lowest hash wins, so that another race of the same contenders
    is likely to have the same winner.
    """
    finished = _finished(result)
    if not finished:
        return None
    fastest = min(finished.values(), key=_median)
    if not _beats(fastest, result.baseline):
        return None
    return min(key for key, entry in finished.items() if _ties(entry, fastest) and _beats(entry, result.baseline))


def runner_up(result: RaceResult) -> RunnerUp | None:
    """Return the fastest program of the race besides the winner, and by how much it lost; None if there was no other.

    The interval of a program that was tied with the winner contains 1.
    """
    best = winner(result)
    others = {key: entry for key, entry in _finished(result).items() if key != best}
    if best is not None and len(result.baseline.run_secs) == _rounds(result):
        others[BASELINE.hash] = result.baseline
    if not others:
        return None
    second = min(others, key=lambda key: _median(others[key]))
    won = result.baseline if best is None else _accepted(result)[best]
    ratio, _ = graded(others[second].run_secs, won.run_secs)
    return RunnerUp(second, ratio.value, ratio.low, ratio.high)


def _finished(result: RaceResult) -> dict[str, Raced]:
    """Return the accepted contenders that ran in all rounds."""
    rounds = _rounds(result)
    return {key: entry for key, entry in _accepted(result).items() if len(entry.run_secs) == rounds}


def _rounds(result: RaceResult) -> int:
    return max(len(entry.run_secs) for entry in [result.baseline, *_accepted(result).values()])


def _median(entry: Raced) -> float:
    return statistics.median(entry.run_secs)


def _ties(entry: Raced, fastest: Raced) -> bool:
    """Return whether the medians are within `TIE`, and the interval of their ratio contains 1."""
    if _median(entry) > (1 + TIE) * _median(fastest):
        return False
    ratio, _ = graded(entry.run_secs, fastest.run_secs)
    return ratio.low <= 1.0


def _beats(contender: Raced, baseline: Raced) -> bool:
    """Return whether the speedup, which the certificate will say, is more than 1."""
    return speedup(baseline.run_secs, contender.run_secs) > 1.0


def _certificate(
    result: RaceResult, workload: Workload, outputs: Sequence[bool], rejected: dict[str, Failure]
) -> Certificate:
    args, best = workload.args, winner(result)
    entry = _accepted(result)[best] if best is not None else result.baseline
    written = [info.dtype for info, output in zip(args, outputs, strict=True) if output] or [args[-1].dtype]
    rtol = max(tolerance(dtype, workload.math) for dtype in written)
    candidate_hash = best if best is not None else BASELINE.hash
    return Certificate(
        candidate_hash=candidate_hash,
        inputs=(
            f"{len(DRAWS)} sets of random inputs ({', '.join(DRAWS)}; indices in range), outputs filled with NaN or an "
            "unlikely number before the call, all arguments compared after it"
            + (_WITHOUT_NAN if any(info.values is Values.NUMBER for info in args) else "")
            + (_SMALL if any(info.values is Values.SMALL for info in args) else "")
            + (_BY_CONSENT if workload.math == TF32 else "")
        ),
        rtol=rtol,
        atol=rtol,
        max_abs_error=entry.max_abs_error,
        max_rel_error=entry.max_rel_error,
        best_run_secs=entry.run_secs,
        baseline_run_secs=result.baseline.run_secs,
        contenders=len(result.contenders) + 1,
        rejected=rejected,
        library=result.library,
        sandbox=result.sandbox,
        system=result.system,
        device_state=result.device_state,
        seed=result.seed,
        artifact_sha256=result.artifacts.get(candidate_hash),
        waited=result.waited,
        runner_up=runner_up(result),
    )

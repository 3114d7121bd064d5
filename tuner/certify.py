"""The honest winner of a task: who may contend, who wins, and the evidence kept for it."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Sequence

from tuner.arrays import DRAWS, tolerance
from tuner.ports import Fleet, RaceEntry, RaceRequest, RaceResult
from tuner.types import BASELINE, Certificate, Measured, TensorInfo, Trial, Workload


def certify(
    fleet: Fleet, workload: Workload, outputs: tuple[bool, ...], trials: Sequence[Trial], *, contenders: int, seed: int
) -> Certificate:
    """Race the best ``contenders`` measured trials with the baseline and return the evidence for the winner.

    A contender that is wrong or fails is thrown out, and the next best ones are raced until one stands or none is
    left. Raises RaceFailed where the unscheduled program itself cannot be run.
    """
    rejected: dict[str, str] = {}
    ranked = _ranking(trials, 8 * contenders)
    while True:
        chosen = [trial for trial in ranked if trial.candidate.hash not in rejected][:contenders]
        result = fleet.race(
            RaceRequest(
                module_json=workload.module_json,
                args=workload.args,
                outputs=outputs,
                contenders={t.candidate.hash: t.candidate.trace_json for t in chosen if t.candidate.trace_json},
                seed=seed,
            )
        )
        rejected |= {key: entry.error for key, entry in result.contenders.items() if entry.error is not None}
        if not chosen or any(entry.error is None for entry in result.contenders.values()):
            return _certificate(result, workload.args, outputs, rejected)


def _ranking(trials: Sequence[Trial], count: int) -> list[Trial]:
    measured = [t for t in trials if isinstance(t.outcome, Measured) and t.candidate.trace_json is not None]
    return heapq.nsmallest(count, measured, key=lambda trial: trial.outcome.least)  # type: ignore[union-attr]


def winner(result: RaceResult) -> str | None:
    """Hash of the contender with the lowest median, if it beats the baseline round by round; None if none does.

    Only one that ran in all rounds can win.
    """
    standing = {key: entry for key, entry in result.contenders.items() if entry.error is None}
    rounds = max(len(entry.run_secs) for entry in [result.baseline, *standing.values()])
    finished = {key: entry for key, entry in standing.items() if len(entry.run_secs) == rounds}
    if not finished:
        return None
    best = min(finished, key=lambda key: statistics.median(finished[key].run_secs))
    return best if _beats(finished[best], result.baseline) else None


def _beats(contender: RaceEntry, baseline: RaceEntry) -> bool:
    """Faster in the median of the paired ratios: drift of the machine between rounds cancels.

    A baseline that is far slower is not in all rounds.
    """
    ratios = [ours / theirs for ours, theirs in zip(contender.run_secs, baseline.run_secs, strict=False)]
    return statistics.median(ratios) < 1.0


def _certificate(
    result: RaceResult, args: Sequence[TensorInfo], outputs: Sequence[bool], rejected: dict[str, str]
) -> Certificate:
    best = winner(result)
    entry = result.contenders[best] if best is not None else result.baseline
    written = [info.dtype for info, output in zip(args, outputs, strict=True) if output] or [args[-1].dtype]
    rtol = max(tolerance(dtype) for dtype in written)
    return Certificate(
        candidate_hash=best if best is not None else BASELINE.hash,
        inputs=(
            f"{len(DRAWS)} sets of random inputs ({' and '.join(DRAWS)}; indices in range), outputs filled with NaN or "
            "an unlikely integer before the call, all arguments compared after it"
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
    )

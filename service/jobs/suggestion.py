"""The suggested number of trials of a model, and the note for a job that allows fewer."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.results.units import plural

TRIALS_PER_FUNCTION = 16
"""Two batches. Of the six models of docs/benchmarks/quality.md, the median had 95 % of its final quality after 8 trials
for each of its functions, and five had it after 16."""


def suggested_trials(answered: Sequence[bool]) -> int:
    """Return the suggested trials of a job, given which functions are answered without a search; 0 if all are.

    Functions that are answered count, too: a job leaves their share of its trials unused.
    """
    return 0 if all(answered) else TRIALS_PER_FUNCTION * len(answered)


def hint(max_trials: int, functions: int, suggested: int) -> list[str]:
    """Return the note for a job that allows fewer trials than suggested; no note for other jobs."""
    if max_trials >= suggested:
        return []
    allowed = f"{plural(max_trials, 'trial')} for {plural(functions, 'function')}"
    return [f"{allowed}: {suggested} or more are suggested (--max-trials {suggested})"]

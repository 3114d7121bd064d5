"""Replays the search of a case, and stops it where a job with ``until="plateau"`` would stop."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

from benchmarks.quality.outcome import Outcome
from tuner.plateau import Finished, gain_of_next_minute
from tuner.search.config import SearchConfig

_CONFIG = SearchConfig()


@dataclass(frozen=True)
class Stop:
    """Trials until the stop, those of the whole search, and the quality at the stop over the final one."""

    trials: int
    all_trials: int
    quality: float

    @property
    def share(self) -> float:
        return self.trials / self.all_trials


def stop(outcome: Outcome) -> Stop | None:
    """Return where the search would have stopped, looking after each batch; None without a complete history.

    The history has no times: the trials are spread evenly over the seconds of the search.
    """
    qualities = outcome.qualities
    if outcome.tuned is None or len(qualities) < 2:
        return None
    made = len(qualities) - 1
    trials = next((count for count in range(0, made, _CONFIG.batch) if _at_plateau(outcome, count)), made)
    return Stop(trials, made, qualities[trials])


def _at_plateau(outcome: Outcome, trials: int) -> bool:
    assert outcome.tuned is not None
    weights = {task["workload"]: task["weight"] for task in outcome.tuned["tasks"]}
    numbers = {workload: number for number, workload in enumerate(weights)}
    seconds = outcome.tuned["budget"]["max_seconds"] or outcome.tuned["seconds"]
    pace = seconds / outcome.tuned["trials"]
    history = [entry for entry in outcome.tuned["history"] if entry[1] > 0]
    made, in_all = (Counter(workload for workload, *_ in part) for part in (history[:trials], history))
    if any(made[workload] < min(_CONFIG.batch, in_all[workload]) for workload in weights):
        return False
    baselines = (Finished(0.0, numbers[task["workload"]], task["baseline_us"]) for task in outcome.tuned["tasks"])
    finished = (
        Finished(pace * position, numbers[workload], latency)
        for position, (workload, _, latency) in enumerate(history[:trials], start=1)
    )
    window = max(_CONFIG.plateau_window, _CONFIG.plateau_window_per_task * len(weights))
    gain = gain_of_next_minute(
        list(itertools.chain(baselines, finished)),
        {numbers[workload]: weight for workload, weight in weights.items()},
        window=window,
    )
    return gain < _CONFIG.plateau_gain

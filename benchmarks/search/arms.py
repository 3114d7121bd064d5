"""What is compared: the arms, and for which workloads and seeds each of them runs."""

from __future__ import annotations

import random

from benchmarks.search.ours import ABLATIONS
from benchmarks.search.run_record import Run

TRIALS = 128
SAMPLED = ("GMM-128", "C1D-1", "C2D-1", "GRP-1", "NRM-1")
"""Workloads of the ablations."""

ARMS = {
    "A": "stock `tune_tir`, as a user calls it",
    "A1": "MetaSchedule's search, model and measuring settings on Loopwright's warm workers",
    "R": "random search on Loopwright's workers",
    "C": "Loopwright, cold",
    "W": "Loopwright, warm: a database of other workloads, other shapes of the family among them",
    "X": "Loopwright, warm: a database of other families only",
    "S": "as W, with the database's latencies shuffled: must not do better than C",
}
SEEDS: dict[str, tuple[int, ...]] = {
    "A": (0, 1),
    **dict.fromkeys(("A1", "R", "C", "W", "X", "S"), (0, 1, 2)),
    **dict.fromkeys(ABLATIONS, (2,)),
}


def plan(workloads: list[str], arms: list[str]) -> list[Run]:
    """Seed by seed, workloads and, within each, arms in random order: whatever is stopped is a fair part."""
    order = random.Random(0)
    runs = []
    for seed in sorted({seed for seeds in SEEDS.values() for seed in seeds}):
        for workload in order.sample(workloads, len(workloads)):
            present = [arm for arm in arms if seed in SEEDS[arm] and _is_for(arm, workload)]
            runs += [Run(arm, workload, seed) for arm in order.sample(present, len(present))]
    return runs


def _is_for(arm: str, workload: str) -> bool:
    return workload in SAMPLED or arm not in ABLATIONS

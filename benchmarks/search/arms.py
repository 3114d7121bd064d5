"""What is compared: the arms, and the cells in which they meet."""

from __future__ import annotations

import random
from dataclasses import dataclass

from benchmarks.search.ours import ABLATIONS

TRIALS = 128
SEEDS = (0, 1, 2)
ABLATED = ("GMM-128", "C1D-1", "C2D-1", "GRP-1", "NRM-1")
"""Workloads of the ablations, which run with the last seed."""

ARMS = {
    "A": "stock `tune_tir` as a user calls it, but its builders get time to start, and PyTorch is hidden from them",
    "A1": "MetaSchedule's search, cost model and measuring settings on Loopwright's warm workers",
    "R": "random search on Loopwright's workers",
    "C": "Loopwright, cold: with an empty database",
    "W": "Loopwright, warm: with a database of other workloads, among them the same functions at other shapes",
    "X": "Loopwright, warm: with a database of other functions only",
    "S": "control for W: only the randomly drawn trials of its database, with shuffled latencies; must not beat C",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """All arms on one workload with one seed, on one machine, and raced there: what may be compared."""

    workload: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.workload}.{self.seed}"

    @property
    def arms(self) -> list[str]:
        """In a random order, always the same."""
        ablated = self.workload in ABLATED and self.seed == SEEDS[-1]
        arms = [*ARMS, *ABLATIONS] if ablated else list(ARMS)
        return random.Random(self.name).sample(arms, len(arms))


def plan(workloads: list[str]) -> list[Cell]:
    """Seed by seed, workloads in random order: whatever is stopped is a fair part."""
    order = random.Random(0)
    return [Cell(workload, seed) for seed in SEEDS for workload in order.sample(workloads, len(workloads))]

"""The plan of the comparison: its arms, and the cells in which they run."""

from __future__ import annotations

import random
from dataclasses import dataclass

TRIALS = 128
SEEDS = (0, 1, 2)

ARMS = {
    "A": "stock `tune_tir` as a user calls it, but its builders get time to start, and PyTorch is hidden from them",
    "A1": "MetaSchedule's search, cost model and measuring settings on Loopwright's warm workers",
    "R": "random search on Loopwright's workers",
    "C": "Loopwright, cold: with an empty database",
    "T": "the same search in the space of TVM's own sketches, which A and A1 search",
    "W": "Loopwright, warm: with a database of other workloads, among them the same functions at other shapes",
    "X": "Loopwright, warm: with a database of other functions only",
    "S": "control for W: only the randomly drawn trials of its database, with shuffled latencies; must not beat C",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """All arms on one workload with one seed, run and raced on one machine: only these are compared."""

    workload: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.workload}.{self.seed}"

    @property
    def arms(self) -> list[str]:
        """The arms in a random order, which is always the same."""
        return random.Random(self.name).sample(list(ARMS), len(ARMS))


def plan(workloads: list[str]) -> list[Cell]:
    """Return the cells seed by seed, with the workloads in random order, so that any first part is a fair sample."""
    order = random.Random(0)
    return [Cell(workload, seed) for seed in SEEDS for workload in order.sample(workloads, len(workloads))]

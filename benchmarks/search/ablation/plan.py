"""The plan of the ablation: its cells, and the arms that run in each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results import RAW
from benchmarks.search.ours import ABLATIONS, WARM_ABLATIONS
from benchmarks.search.run_record import this_code

WORKLOADS = ("C1D-1", "DEP-1", "GMM-128", "GRP-1", "MM-512")
"""Workloads of which a cell takes minutes, and on which random search was behind after 64 or 128 trials
(docs/benchmarks/search.md). Where random programs are as good, no mechanism can show a gain."""
SEEDS = (0, 1, 2)
TRIALS = 96
"""After 64, the models were not shown to be better than random search on two cores of a Zen 4 machine."""
REFERENCES = ("reference-1", "reference-2")
"""Runs of the unchanged config. What they differ by is noise: measurements and their order are not repeatable."""


@dataclass(frozen=True, slots=True)
class Cell:
    """All arms on one workload with one seed. In a warm cell all arms but those of the teachers' data are complete."""

    workload: str
    seed: int
    trials: int
    warm: bool = False

    @property
    def name(self) -> str:
        return f"{'warm' if self.warm else 'cold'}.{self.workload}.{self.seed}"

    @property
    def variants(self) -> dict[str, str]:
        """Arm -> variant of `benchmarks.search.ours`, in a random order that is always the same."""
        reference, ablations = ("W", WARM_ABLATIONS) if self.warm else ("C", ABLATIONS)
        variants = dict.fromkeys(REFERENCES, reference) | {mechanism: mechanism for mechanism in ablations}
        order = random.Random(self.name).sample(list(variants), len(variants))
        return {arm: variants[arm] for arm in order}

    @property
    def folder(self) -> Path:
        """The folder of the records, which are apart from those of other code."""
        return RAW / "ablation" / f"{this_code()}-{self.trials}" / ("warm" if self.warm else "cold")

    @property
    def race(self) -> Path:
        return self.folder / "races" / f"{self.workload}.{self.seed}.json"


def cells(*, warm: bool, workloads: Sequence[str] = WORKLOADS, trials: int = TRIALS) -> list[Cell]:
    """Return the cells seed by seed, cold ones first, so that any first part is a fair sample."""
    return [
        Cell(workload, seed, trials, is_warm)
        for is_warm in ((False, True) if warm else (False,))
        for seed in SEEDS
        for workload in workloads
    ]

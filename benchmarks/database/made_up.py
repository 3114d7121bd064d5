"""What is in the database that the benchmark fills, by number: who asks it needs no TVM."""

from __future__ import annotations

import json
from dataclasses import dataclass

from benchmarks.rows import name
from tuner.types import DeviceClass

TRIALS, WORKLOADS, JOBS = 1_000_000, 10_000, 2_500
OLD_JOBS = 97_500
"""Jobs that the database answered, with one task and no trials."""
FAMILY = 2_300
"""Workloads of the largest family; the others have twenty."""
HEAVY = 5_000
"""Trials of the first workload; its job has 300 more."""
TVM_VERSION = "seeded"
TARGET = json.dumps({"kind": "llvm", "mcpu": "znver4", "num-cores": 32}, sort_keys=True)


def device_class() -> DeviceClass:
    return DeviceClass(TARGET, "AuthenticAMD znver4 a07c", ("made up",), 32, 32, "seeded")


def another_device_class() -> DeviceClass:
    """Return the one that every tenth job was tuned on."""
    return DeviceClass(TARGET, "AuthenticAMD znver5 b024", ("made up",), 32, 32, "seeded")


@dataclass(frozen=True, slots=True)
class Size:
    trials: int = TRIALS
    workloads: int = WORKLOADS
    jobs: int = JOBS
    old_jobs: int = OLD_JOBS
    family: int = FAMILY

    @classmethod
    def of(cls, trials: int) -> Size:
        """Return the size of a database with so many trials; a small one has as much of all else as is asked for."""
        share = min(1.0, trials / TRIALS)
        return cls(trials, max(300, int(WORKLOADS * share)), max(250, int(JOBS * share)), int(OLD_JOBS * share))

    @property
    def per_workload(self) -> int:
        return self.trials // self.workloads

    def trials_of(self, workload: int) -> int:
        return HEAVY if workload == 0 and self.trials > 2 * HEAVY else self.per_workload


def workload_hash(number: int) -> str:
    return name("workload", number) + name("hash", number)


def job_id(number: int) -> str:
    return name("job", number)

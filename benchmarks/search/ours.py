"""Loopwright's arms: its loop on its own builders and measurer, in a process of its own beside a running cluster.

C is the search as it is, cold. R is the same loop with a cost model that never gets ready, so that all proposals are
random. W starts with what a database of other workloads has to tell, X with what it has to tell without the workload's
family. S is W with a database whose latencies were shuffled within each workload: it must not do better than C.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.search.run_record import Run
from benchmarks.search.teachers import experience
from benchmarks.search.workloads import WORKLOADS
from tuner import ir
from tuner.cost_model.model import CostModel
from tuner.testing.memory_ledger import MemoryLedger
from tuner.tune import TuneRequest, tune
from tuner.types import DeviceClass, Measured, Outcome, TaskSpec, Trial
from workers.cluster import connect
from workers.fleet import RayFleet


class ClockLedger(MemoryLedger):
    """Notes in ``run`` when each outcome reaches the tuner."""

    def __init__(self, run: Run, started: float) -> None:
        super().__init__(1)
        self._run = run
        self._started = started

    def finish(self, trial: Trial, outcome: Outcome) -> None:
        super().finish(trial, outcome)
        if trial.candidate.trace_json is not None:
            latency = outcome.median if isinstance(outcome, Measured) else None
            self._run.observe(time.monotonic() - self._started, latency, trial.candidate.trace_json)


def main(arguments: Sequence[str]) -> None:
    arm, workload, seed, trials, device_class_json, folder, address, builders, measurer, teachers = arguments
    if arm == "R":
        CostModel.fit = lambda self: None  # type: ignore[method-assign]
    fields = json.loads(device_class_json)
    device_class = DeviceClass(**fields | {"features": tuple(fields["features"])})
    target_json = device_class.target_json
    connect(address, Path(folder))
    run = Run(arm, workload, int(seed))
    # What the service has ready when a job starts.
    relatives, base = experience(teachers, workload, device_class, arm) if arm in ("W", "X", "S") else ((), None)
    started = time.monotonic()
    spec = TaskSpec(ir.workload(WORKLOADS[workload](), workload), 1, relatives)
    fleet = RayFleet(target_json, json.loads(builders), {measurer: "local"})
    ledger = ClockLedger(run, started)
    tune(TuneRequest([spec], target_json, None, int(trials), None, int(seed), base), fleet, ledger)
    run.seconds = time.monotonic() - started
    run.peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    run.save(Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])

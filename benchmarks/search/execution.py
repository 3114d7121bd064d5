"""Running an arm of the comparison in a process of its own, beside a running cluster."""

from __future__ import annotations

from pathlib import Path

import ray

from benchmarks.search.arms import TRIALS
from benchmarks.search.ours import Request
from benchmarks.search.processes import run_module, run_request
from benchmarks.search.run_record import Run
from benchmarks.search.teachers import DATABASE
from workers.cluster import Offer

SHUFFLED = f"{DATABASE.removesuffix('.db')}-shuffled.db"


def execute(run: Run, offer: Offer, folder: Path) -> None:
    """Run an arm in a process of its own; its record goes into the folder."""
    device_class = offer.device_class
    if run.arm in ("A", "A1"):
        arguments = [run.arm, run.workload, str(run.seed), run.machine, str(TRIALS), str(folder)]
        # By itself, TVM's runtime takes half of a virtual machine's cores. All arms measure with the same threads.
        threads = {name: str(device_class.threads) for name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS")}
        command = [*arguments, device_class.target_json]
        run_module("benchmarks.search.stock", command, name=run.file_name, environment=threads)
        return
    request = Request(
        arm=run.arm,
        variant=run.arm,
        workload=run.workload,
        seed=run.seed,
        machine=run.machine,
        trials=TRIALS,
        folder=str(folder),
        device_class=device_class,
        address=ray.get_runtime_context().gcs_address,
        builders=offer.builders,
        measurer=offer.measurer,
        teachers={"W": DATABASE, "X": DATABASE, "S": SHUFFLED}.get(run.arm),
    )
    run_request(request, name=run.file_name)

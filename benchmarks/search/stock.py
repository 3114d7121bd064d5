"""Arms A and A1: stock MetaSchedule, in its own process.

A is `tune_tir` as a user calls it, except that its builders start before the timeout of a build begins. A1 has the same
search, cost model and measuring settings, but builds and runs in Loopwright's warm children instead of stock's pools.
Prints nothing and writes the run's record.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import tvm
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.utils import cpu_count

from benchmarks.search.run_record import Run
from benchmarks.search.warm_stock import WarmBuilder, WarmRunner
from benchmarks.search.workloads import WORKLOADS
from loopwright.codegen.serialization import trace_to_json
from loopwright.comparing.child import peak_mb


def start_builder() -> None:
    """Import what a stock builder needs for its first build; on a slow machine this alone exceeds a build's 30 s."""
    for name in ("tvm.s_tir.meta_schedule.builder.local_builder", "tvm.s_tir.tensor_intrin"):
        importlib.import_module(name)


def main() -> None:
    arm, workload, seed, machine, trials, folder, target_json = sys.argv[1:]
    run = Run(arm, workload, int(seed), machine)
    started = time.monotonic()

    @derived_object
    class Clock(ms.measure_callback.PyMeasureCallback):
        """Records when the results of each batch reach the tuner."""

        def apply(
            self, task_scheduler: Any, task_id: int, candidates: Any, builder_results: Any, runner_results: Any
        ) -> None:
            seconds = time.monotonic() - started
            for candidate, result in zip(candidates, runner_results, strict=True):
                latency = None if result.error_msg else float(sum(result.run_secs)) / len(result.run_secs)
                run.observe(seconds, latency, trace_to_json(candidate.sch.trace))

    options: dict[str, Any] = {"builder": WarmBuilder(target_json), "runner": WarmRunner(target_json)}
    if arm == "A":
        workers = cpu_count(logical=False)  # as `tune_tir` would have it
        options = {"builder": ms.builder.LocalBuilder(max_workers=workers, initializer=start_builder)}
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as work_dir:
        ms.tune_tir(
            mod=WORKLOADS[workload](),
            target=tvm.target.Target(json.loads(target_json)),
            work_dir=work_dir,
            max_trials_global=int(trials),
            num_trials_per_iter=64,
            measure_callbacks=[ms.measure_callback.AddToDatabase(), ms.measure_callback.UpdateCostModel(), Clock()],
            seed=int(seed) + 1,
            **options,
        )
    run.seconds = time.monotonic() - started
    run.peak_mb = peak_mb()
    run.save(Path(folder))


# Stock builders are spawned and import this module again.
if __name__ == "__main__":
    main()

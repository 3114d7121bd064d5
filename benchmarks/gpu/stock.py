"""Stock MetaSchedule on a case, in a process of its own: `tune_tir` as a user calls it, with its own timing.

``tuned`` starts that process and returns what it found in the time that it has.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tvm
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.utils import cpu_count

from benchmarks.gpu.workloads import CASES
from benchmarks.search.stock import start_builder
from loopwright.codegen.build import compile_module
from loopwright.codegen.schedule import scheduled_module
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from tuner.workload import make_workload

_BATCH = 64
"""Trials that are measured together; TVM's default."""
NEAR = 0.95
"""Of a program's speed."""


@dataclass(slots=True)
class Found:
    """``progress`` has the trials that were the best so far: seconds since the start, and seconds a call."""

    trials: int = 0
    failed: int = 0
    progress: list[tuple[float, float]] = field(default_factory=list)
    trace_json: str | None = None

    @property
    def best(self) -> float:
        """The least seconds a call; infinity if nothing ran."""
        return min((latency for _, latency in self.progress), default=float("inf"))


def tuned(case: str, trials: int, seconds: float, target_json: str) -> Found:
    """Tune a case by its name, and return what was found when the trials or the seconds were used up."""
    with tempfile.TemporaryDirectory(prefix="loopwright-stock-") as folder:
        output = Path(folder) / "found.json"
        command = [sys.executable, "-m", "benchmarks.gpu.stock", case, str(trials), target_json, str(output)]
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its builders, too
        process.wait()
        return Found(**json.loads(output.read_text())) if output.exists() else Found()


def program(case_func: tvm.tirx.PrimFunc, trace_json: str, target_json: str) -> Any:
    """Return the program of a trace that `tuned` found, built as it was measured."""
    target = target_from(target_json)
    mod = module_from_json(make_workload(case_func, "main").module_json)
    return compile_module(scheduled_module(mod, json.loads(trace_json), target, exact_math=True), target)


def seconds_until(progress: Sequence[tuple[float, float]], latency: float) -> float | None:
    """Return when a program was known that takes no longer than ``latency``, or None."""
    return min((seconds for seconds, reached in progress if reached <= latency), default=None)


def main() -> None:
    name, trials, target_json, output = sys.argv[1:]
    (case,) = (case for case in CASES if case.name == name)
    found = Found()
    started = time.monotonic()

    @derived_object
    class Record(ms.measure_callback.PyMeasureCallback):
        """Writes down what was found after each batch: this process may be killed before its end."""

        def apply(
            self, task_scheduler: Any, task_id: int, candidates: Any, builder_results: Any, runner_results: Any
        ) -> None:
            seconds = time.monotonic() - started
            for candidate, result in zip(candidates, runner_results, strict=True):
                found.trials += 1
                found.failed += bool(result.error_msg)
                if not result.error_msg and (latency := min(map(float, result.run_secs))) < found.best:
                    found.progress.append((seconds, latency))
                    found.trace_json = trace_to_json(candidate.sch.trace)
            written = Path(output).with_suffix(".part")
            written.write_text(json.dumps(asdict(found)))
            written.replace(output)

    with tempfile.TemporaryDirectory(prefix="loopwright-stock-") as work_dir:
        ms.tune_tir(
            mod=module_from_json(make_workload(case.func(), "main").module_json),
            target=target_from(target_json),
            work_dir=work_dir,
            max_trials_global=int(trials),
            num_trials_per_iter=min(_BATCH, int(trials)),
            measure_callbacks=[ms.measure_callback.AddToDatabase(), ms.measure_callback.UpdateCostModel(), Record()],
            builder=ms.builder.LocalBuilder(max_workers=cpu_count(logical=False), initializer=start_builder),
        )


# Stock builders are spawned and import this module again.
if __name__ == "__main__":
    main()

"""Stock MetaSchedule: ``tune_tir`` in a process of its own, as a user calls it, with its own timing.

.venv/bin/python -m benchmarks.stock MODULE.json TARGET_JSON WORK_DIR TRIALS SEED OUTPUT
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tvm
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.utils import cpu_count

from benchmarks.alone import run_module
from loopwright.codegen.serialization import module_from_json, module_to_json, trace_to_json
from loopwright.codegen.target import target_from
from loopwright.comparing.child import peak_mb

_BATCH = 64
"""Trials that are measured together; TVM's default."""


@dataclass(slots=True)
class Found:
    """``trials`` are (seconds since the start, seconds a call or None for a failure, trace) of each trial."""

    seconds: float = 0.0
    peak_mb: float | None = None
    trials: list[tuple[float, float | None, str]] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return sum(latency is None for _, latency, _ in self.trials)

    @property
    def progress(self) -> list[tuple[float, float, str]]:
        """The trials that were the best so far."""
        best, found = float("inf"), []
        for seconds, latency, trace_json in self.trials:
            if latency is not None and latency < best:
                best = latency
                found.append((seconds, latency, trace_json))
        return found


def tuned(
    mod: tvm.IRModule,
    target_json: str,
    *,
    trials: int,
    seed: int,
    work_dir: Path,
    environment: dict[str, str],
    limit_s: float | None = None,
) -> Found:
    """Tune a module, and return what was found when the trials or the seconds were used up; nothing if it failed.

    The database of tuning records stays in ``work_dir``.
    """
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as folder:
        module, output = Path(folder, "module.json"), Path(folder, "found.json")
        module.write_text(module_to_json(mod))
        words = [str(module), target_json, str(work_dir), str(trials), str(seed), str(output)]
        run_module("benchmarks.stock", words, environment=environment, limit_s=limit_s)
        if not output.exists():
            return Found()
        fields = json.loads(output.read_text())
        return Found(**fields | {"trials": [tuple(trial) for trial in fields["trials"]]})


def start_builder() -> None:
    """Import what a stock builder needs for its first build; on a slow machine this alone exceeds a build's 30 s."""
    for name in ("tvm.s_tir.meta_schedule.builder.local_builder", "tvm.s_tir.tensor_intrin"):
        importlib.import_module(name)


def main() -> None:
    module, target_json, work_dir, trials, seed, output = sys.argv[1:]
    mod, target = module_from_json(Path(module).read_text()), target_from(target_json)
    found, started = Found(), time.monotonic()

    def write() -> None:
        """Write what was found so far: this process may be killed before its end."""
        found.seconds, found.peak_mb = time.monotonic() - started, peak_mb()
        draft = Path(output).with_suffix(".part")
        draft.write_text(json.dumps(asdict(found)))
        draft.replace(output)

    @derived_object
    class Record(ms.measure_callback.PyMeasureCallback):
        """Records when the results of each batch reach the tuner."""

        def apply(
            self, task_scheduler: Any, task_id: int, candidates: Any, builder_results: Any, runner_results: Any
        ) -> None:
            seconds = time.monotonic() - started
            for candidate, result in zip(candidates, runner_results, strict=True):
                latency = None if result.error_msg else statistics.fmean(map(float, result.run_secs))
                found.trials.append((seconds, latency, trace_to_json(candidate.sch.trace)))
            write()

    ms.tune_tir(
        mod=mod,
        target=target,
        work_dir=work_dir,
        max_trials_global=int(trials),
        num_trials_per_iter=min(_BATCH, int(trials)),
        builder=ms.builder.LocalBuilder(max_workers=cpu_count(logical=False), initializer=start_builder),
        measure_callbacks=[ms.measure_callback.AddToDatabase(), ms.measure_callback.UpdateCostModel(), Record()],
        seed=int(seed),
    )
    write()


# Stock builders are spawned and import this module again.
if __name__ == "__main__":
    main()

"""``tune_tir`` in a process without PyTorch, which would make its builders time out while they start.

.venv/bin/python -m benchmarks.quality.stock_tuning MODULE.json TARGET_JSON WORK_DIR TRIALS
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import tvm
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.utils import cpu_count

from benchmarks.search.stock import start_builder
from loopwright.codegen.serialization import module_from_json


def main() -> None:
    module, target_json, work_dir, trials = sys.argv[1:]
    ms.tune_tir(
        mod=module_from_json(Path(module).read_text()),
        target=tvm.target.Target(json.loads(target_json)),
        work_dir=work_dir,
        max_trials_global=int(trials),
        num_trials_per_iter=64,
        builder=ms.builder.LocalBuilder(max_workers=cpu_count(logical=False), initializer=start_builder),
        seed=1,
    )


# The builders are spawned and import this module again.
if __name__ == "__main__":
    main()

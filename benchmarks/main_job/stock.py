"""The stock arm: `tune_tir` as a user calls it, in a fresh process. Prints its wall-clock seconds as JSON.

Arguments: target JSON, work directory, seed. Imports are not counted, as the service's are not.
"""

from __future__ import annotations

import json
import sys
import time

import tvm
from tvm.s_tir import meta_schedule as ms

from benchmarks.main_job.workload import TRIALS, product


def main() -> None:
    target_json, work_dir, seed = sys.argv[1:]
    target = tvm.target.Target(json.loads(target_json))
    started = time.monotonic()
    ms.tune_tir(
        mod=product(),
        target=target,
        work_dir=work_dir,
        max_trials_global=TRIALS,
        num_trials_per_iter=64,
        seed=int(seed),
    )
    print(json.dumps({"seconds": time.monotonic() - started}))


# MetaSchedule's builders are spawned and import this module again.
if __name__ == "__main__":
    main()

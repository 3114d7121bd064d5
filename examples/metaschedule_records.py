"""Records to and from stock MetaSchedule: what it tuned comes in, what Loopwright knows goes out and is applied by it.

.venv/bin/python -m examples.metaschedule_records
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import tvm
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.testing import te_workload

import loopwright


def main(client: loopwright.Client, trials: int = 32) -> None:
    mod = tvm.IRModule({"main": te_workload.create_te_workload("GMM", 0)})
    offer = next(offer for offer in client.targets() if offer.is_auto)
    target = tvm.target.Target(offer.target)
    with tempfile.TemporaryDirectory() as folder:
        # What stock MetaSchedule measured, kept as its pair of JSON files.
        theirs = Path(folder) / "theirs"
        # Random schedules, its quickest strategy: what they are does not matter here.
        ms.tune_tir(
            mod, target, str(theirs), max_trials_global=4, num_trials_per_iter=4, strategy="replay-trace", seed=1
        )
        report = client.import_records(theirs)
        print(f"imported {report.imported} records, {report.duplicates} known; not taken: {report.errors or 'none'}")

        # Imported timings are hearsay until they are measured here: a job races them against its own.
        job = client.submit(mod, max_trials=trials, name="product").wait()
        assert job.state == "succeeded", job.error

        # The other way: stock MetaSchedule reads what Loopwright knows, and builds with it.
        ours = client.export_records(Path(folder) / "ours")
        database = ms.database.JSONDatabase(work_dir=str(ours))
        schedule = ms.tir_integration.compile_tir(database, mod, target)
        assert schedule is not None, "the pair holds a record of this product"
        built = tvm.compile(schedule.mod, target=target)

    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((1, 128, 128), dtype="float32") for _ in range(2))
    c = tvm.runtime.empty((1, 128, 128), "float32")
    built["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4, atol=1e-4)
    print("stock MetaSchedule applied the exported record, and the product is right")


if __name__ == "__main__":
    main(loopwright.Client())

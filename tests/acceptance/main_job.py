"""The main job, through HTTP alone: a real speedup, proven, remembered."""

from __future__ import annotations

from typing import Any

import tvm

from tests.support.ledger import check_ledger
from tests.support.programs import product_relu, renamed
from tests.support.service import Service

MM_RELU = product_relu(112)


def check_main_job(service: Service, job: dict[str, Any]) -> None:
    """Check a finished job of `MM_RELU`, and ask again."""
    assert job["state"] == "succeeded", job
    (task,) = job["tasks"]
    assert task["certified"]
    assert task["answered_from"] == "search"
    assert task["speedup"] > 1, task
    ledger = check_ledger(service, job)
    record = service.get(f"/records/{task['record_id']}")
    assert record["job_id"] == job["id"]
    assert record["certificate"]["speedup"] == task["speedup"]
    assert record["id"] in {trial["id"] for trial in ledger}

    # The same once more, with other names, and as TVM's JSON: known already.
    saved = {"format": "tvm-json", "data": tvm.ir.save_json(tvm.script.from_source(MM_RELU))}
    for module in (MM_RELU, renamed(MM_RELU), saved):
        again = service.finished(service.submit(module, trials=job["budget"]["max_trials"]))
        assert again["state"] == "succeeded"
        assert again["tasks"][0]["answered_from"] == "database"
        assert again["tasks"][0]["record_id"] == task["record_id"]
        assert again["tasks"][0]["speedup"] == task["speedup"]
        assert again["tasks"][0]["certified"]
        assert service.items(f"/jobs/{again['id']}/trials") == []

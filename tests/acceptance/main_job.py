"""The main job, through HTTP alone: a real speedup, proven, remembered."""

from __future__ import annotations

import pytest

from tests.support.ledger import check_ledger
from tests.support.programs import product_relu, renamed
from tests.support.service import Service

MM_RELU = product_relu(112)
"""No other test tunes it."""


def main_job(service: Service, trials: int) -> None:
    """Tune the program and ask again."""
    job = service.tuned(MM_RELU, trials=trials, name="mm_relu")
    (task,) = job["tasks"]
    assert job["name"] == "mm_relu"
    assert task["answered_from"] == "search"
    assert task["speedup"] > 1, task
    assert task["speedup"] == pytest.approx(task["baseline_us"] / task["best_us"])
    ledger = check_ledger(service, job)
    record = service.get(f"/records/{task['record_id']}")
    assert record["job_id"] == job["id"]
    assert record["certificate"]["speedup"] == task["speedup"]
    assert record["id"] in {trial["id"] for trial in ledger}

    # The same once more, and with other names: known already.
    for module in (MM_RELU, renamed(MM_RELU)):
        again = service.finished(service.submit(module, trials=trials))
        assert again["state"] == "succeeded"
        assert again["tasks"][0]["answered_from"] == "database"
        assert again["tasks"][0]["record_id"] == task["record_id"]
        assert again["tasks"][0]["speedup"] == task["speedup"]
        assert again["tasks"][0]["certified"]
        assert service.items(f"/jobs/{again['id']}/trials") == []

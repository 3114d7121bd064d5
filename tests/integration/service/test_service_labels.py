"""Labels of workers over HTTP, and jobs that ask for them."""

from __future__ import annotations

from typing import Any

from db.inputs import WorkerReport
from tests.integration.service.conftest import Api
from tests.support.played_fleet import MACHINE, SANDBOX
from tests.support.programs import product


def test_a_job_asks_for_labels_that_a_live_worker_has(api: Api) -> None:
    refused = api.submit(product(148), status=422, labels={"rack": "a"})
    assert refused["type"] == "urn:loopwright:labels-not-offered"
    assert "rack=a" in refused["detail"]
    assert "host/cpu" in refused["detail"]
    api.submit(product(148), status=422, labels={"rack": "a b"})
    machine: dict[str, Any] = {
        "host": "rack-a",
        "device": "cpu",
        "device_class": MACHINE,
        "builders": 2,
        "sandbox": SANDBOX,
    }
    api.database.workers.register(WorkerReport("rack-a/cpu", **machine, labels={"rack": "a", "tier": "gold"}))
    asked = api.submit(product(148), labels={"rack": "a"})
    assert asked["labels"] == {"rack": "a"}
    assert api.post(f"/jobs/{asked['id']}/resubmit", {}, status=202)["labels"] == {"rack": "a"}
    for worker in api.get("/workers")["items"]:
        assert worker["labels"] == ({"rack": "a", "tier": "gold"} if worker["id"] == "rack-a/cpu" else {})

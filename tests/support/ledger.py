"""What must be true of a job's trials, whatever happened while they were made."""

from __future__ import annotations

from typing import Any

from tests.support.service import Service
from tuner.types import LOSSES


def check_ledger(service: Service, job: dict[str, Any]) -> list[dict[str, Any]]:
    """The job's trials, each there once, finished, numbered without a gap, none lost and none on top of the budget."""
    trials = service.items(f"/jobs/{job['id']}/trials", page_size=50)
    assert len({trial["id"] for trial in trials}) == len(trials)
    searched = [trial for trial in trials if trial["number"] > 0]
    assert len(searched) == job["budget"]["max_trials"] == job["progress"]["trials"] == job["progress"]["total"]
    for task in job["tasks"]:
        numbers = [trial["number"] for trial in trials if trial["workload_hash"] == task["workload_hash"]]
        assert numbers == list(range(task["trials"] + 1))
    assert {trial["origin"] for trial in trials if trial["number"] == 0} == {"baseline"}
    assert all(trial["state"] in ("measured", "failed") and trial["finished_at"] for trial in trials)
    # What was lost with a process is tried again, not written off.
    assert not [trial for trial in trials if trial["failure_kind"] in LOSSES]
    told = [event["data"]["id"] for event in service.events(job["id"]) if event["type"] == "trial"]
    assert sorted(told) == sorted(trial["id"] for trial in trials)
    return trials

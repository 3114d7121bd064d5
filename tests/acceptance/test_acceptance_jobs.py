"""Jobs beside each other: joining, cancelling, a restart, and a user's own space."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import Any

import pytest
import tvm
from tvm import s_tir

from loopwright.codegen.serialization import trace_to_list
from tests.acceptance.conftest import Followed
from tests.support.ledger import check_ledger
from tests.support.programs import product
from tests.support.service import PLACES, Service


def _time(job: dict[str, Any], name: str) -> datetime:
    return datetime.fromisoformat(job[name])


@pytest.mark.whole
def test_equal_jobs_at_once_search_once(service: Service) -> None:
    module = product(40, 96, 64)
    first = service.submit(module, trials=12)
    second = service.submit(module, trials=12)
    jobs = [service.finished(job_id) for job_id in (first, second)]
    assert [job["state"] for job in jobs] == ["succeeded"] * 2
    searched = [job for job in jobs if job["tasks"][0]["answered_from"] == "search"]
    answered = [job for job in jobs if job["tasks"][0]["answered_from"] in ("joined", "database")]
    assert (len(searched), len(answered)) == (1, 1)
    check_ledger(service, searched[0])
    assert service.items(f"/jobs/{answered[0]['id']}/trials") == []
    assert answered[0]["tasks"][0]["record_id"] == searched[0]["tasks"][0]["record_id"]


@pytest.mark.whole
def test_a_service_that_was_stopped_goes_on_after_a_start(service: Service) -> None:
    """The service ends as a whole, leaves no process behind, and a new one goes on; no attempt is used."""
    job_id = service.submit(product(128, 96), trials=24)
    service.in_the_middle(job_id)
    stopped_at = datetime.now(UTC)
    assert service.stop() == 0
    service.start()
    job = service.finished(job_id)
    assert job["state"] == "succeeded", job
    assert all(task["certified"] for task in job["tasks"])
    assert _time(job, "finished_at") > stopped_at, "the job was over before the stop"
    check_ledger(service, job)
    with sqlite3.connect(f"file:{service.data_dir / 'loopwright.db'}?mode=ro", uri=True) as database:
        assert database.execute("SELECT attempts FROM jobs WHERE id = ?", [job_id]).fetchone() == (1,)


def test_cancel_running(service: Service) -> None:
    job_id = service.submit(product(80), trials=1000)
    service.in_the_middle(job_id)
    asked = service.http.post(f"/api/v1/jobs/{job_id}/cancel")
    assert asked.status_code == 200
    job = service.finished(job_id)
    assert job["state"] == "cancelled"
    assert job["finished_at"]
    assert 3 <= job["progress"]["trials"] < 1000
    # What was measured stays, finished, and the end is final.
    trials = service.items(f"/jobs/{job_id}/trials")
    assert sum(trial["number"] > 0 for trial in trials) == job["progress"]["trials"]
    assert all(trial["state"] in ("measured", "failed") for trial in trials)
    assert service.http.post(f"/api/v1/jobs/{job_id}/cancel").json()["state"] == "cancelled"
    assert service.events(job_id)[-1]["data"]["state"] == "cancelled"


def test_cancel_finished_changes_nothing(service: Service, main: Followed) -> None:
    assert service.http.post(f"/api/v1/jobs/{main.job['id']}/cancel").json() == main.job


@pytest.mark.whole
def test_max_seconds_ends_the_search(service: Service) -> None:
    job_id = service.submit(product(88), budget={"max_trials": 100_000, "max_seconds": 8})
    job = service.finished(job_id)
    assert job["state"] == "succeeded"
    (task,) = job["tasks"]
    assert task["certified"]
    assert 0 < task["trials"] < 100_000
    assert (_time(job, "finished_at") - _time(job, "started_at")).total_seconds() >= 8
    # It stands for the trials that it made, not for those that it was allowed.
    assert (
        service.finished(service.submit(product(88), trials=task["trials"]))["tasks"][0]["answered_from"] == "database"
    )


def _tiled(module: str) -> list[Any]:
    schedule = s_tir.Schedule(tvm.IRModule({"main": tvm.script.from_source(module)}))
    block = schedule.get_sblock("C", func_name="main")
    i, j, k = schedule.get_loops(block)
    rows = schedule.split(i, schedule.sample_perfect_tile(i, n=2, max_innermost_factor=16))
    columns = schedule.split(j, schedule.sample_perfect_tile(j, n=2, max_innermost_factor=32))
    depth = schedule.split(k, schedule.sample_perfect_tile(k, n=2, max_innermost_factor=16))
    schedule.reorder(rows[0], columns[0], depth[0], rows[1], depth[1], columns[1])
    schedule.vectorize(columns[1])
    return trace_to_list(schedule.trace)


@pytest.mark.whole
def test_own_space(service: Service) -> None:
    """A user's stochastic schedule travels as its trace; only its decisions are searched."""
    module = product(48)
    job = service.tuned(module, trials=8, space=[_tiled(module)])
    (task,) = job["tasks"]
    check_ledger(service, job)
    trace = next(
        record["trace"]
        for record in (
            service.get(f"/records/{item['id']}")
            for item in service.items("/records", workload_hash=task["workload_hash"])
        )
        if record["trace"] is not None
    )
    kinds = [instruction[0] for instruction in trace[0]]
    assert kinds.count("SamplePerfectTile") == 3
    assert kinds.count("Vectorize") == 1
    assert "CacheWrite" not in kinds


@pytest.mark.whole
def test_an_answer_of_the_database_waits_for_no_other_job(service: Service) -> None:
    known = service.tuned(product(124), trials=4)
    # More than there are places for loops.
    priorities = (*[0] * PLACES, -1)
    busy = [
        service.submit(product(128 + 4 * number), trials=5000, priority=each) for number, each in enumerate(priorities)
    ]
    try:
        for job_id in busy[:PLACES]:
            service.in_the_middle(job_id, trials=1)
        again = service.tuned(product(124), trials=4)
        assert again["tasks"][0]["answered_from"] == "database"
        assert again["tasks"][0]["record_id"] == known["tasks"][0]["record_id"]
        assert [service.job(job_id)["state"] for job_id in busy] == [*["running"] * PLACES, "queued"]
    finally:
        for job_id in busy:
            service.http.post(f"/api/v1/jobs/{job_id}/cancel")
        for job_id in busy:
            service.finished(job_id)

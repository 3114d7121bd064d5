"""Jobs beside each other: idempotency, joining, order, limits, cancelling, and a user's own space."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import httpx
import tvm
from tvm import s_tir

from loopwright.codegen.serialization import trace_to_list
from tests.support.ledger import check_ledger
from tests.support.programs import product
from tests.support.service import PLACES, Service
from tests.support.service_client import JOB_SECONDS
from tests.support.waiting import wait_for


def _time(job: dict[str, Any], name: str) -> datetime:
    return datetime.fromisoformat(job[name])


def test_idempotency_key(service: Service) -> None:
    module = product(24)
    first = service.post_job(module, trials=4, headers={"Idempotency-Key": "key 1"})
    again = service.post_job(module, trials=4, headers={"Idempotency-Key": "key 1"})
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["Location"] == first.headers["Location"]
    other = service.post_job(product(25), trials=4, headers={"Idempotency-Key": "key 1"})
    assert other.status_code == 409
    assert other.headers["content-type"] == "application/problem+json"
    assert "Idempotency-Key" in other.json()["detail"]
    apart = service.post_job(module, trials=4, headers={"Idempotency-Key": "key 2"})
    assert apart.json()["id"] != first.json()["id"]
    for answer in (first, apart):
        assert service.finished(answer.json()["id"])["state"] == "succeeded"


def test_equal_requests_at_once_are_one_job(service: Service) -> None:
    before = len(service.items("/jobs"))
    module = product(26)

    def submit() -> httpx.Response | None:
        """The answer, or None where its user has as many requests at work as one may have."""
        answer = service.post_job(module, trials=4, headers={"Idempotency-Key": "at once"})
        return None if answer.status_code == 429 else answer

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: wait_for("its turn", submit, JOB_SECONDS), range(8)))
    assert [answer.status_code for answer in answers] == [202] * 8
    (job_id,) = {answer.json()["id"] for answer in answers}
    assert len(service.items("/jobs")) == before + 1
    check_ledger(service, service.finished(job_id))


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


def test_a_full_queue(service: Service) -> None:
    """While as many jobs run as there is room for: those that wait can be cancelled, and priority goes first."""
    # Of a priority at which they give up no place.
    running = [service.submit(product(64, 64, 64 + 8 * number), trials=500, priority=30) for number in range(PLACES)]
    wait_for("the jobs to run", lambda: {service.job(job_id)["state"] for job_id in running} == {"running"})
    low = service.submit(product(16), trials=4, priority=-1)
    middle = service.submit(product(17), trials=4)
    high = service.submit(product(18), trials=4, priority=10)
    unwanted = service.submit(product(19), trials=4, priority=20)
    assert [service.job(job_id)["state"] for job_id in (low, middle, high, unwanted)] == ["queued"] * 4

    cancelled = service.http.post(f"/api/v1/jobs/{unwanted}/cancel").json()
    assert cancelled["state"] == "cancelled"
    assert cancelled["started_at"] is None
    assert [task["state"] for task in cancelled["tasks"]] == ["cancelled"]

    for job_id in running:
        assert service.http.post(f"/api/v1/jobs/{job_id}/cancel").status_code == 200
    jobs = [service.finished(job_id) for job_id in (high, middle, low)]
    assert [job["state"] for job in jobs] == ["succeeded"] * 3
    started = [_time(job, "started_at") for job in jobs]
    assert started == sorted(started)
    assert [service.finished(job_id)["state"] for job_id in running] == ["cancelled"] * len(running)
    assert service.job(unwanted) == cancelled
    assert service.items(f"/jobs/{unwanted}/trials") == []


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
    # The same again is not held up by what was cancelled.
    assert service.tuned(product(80), trials=4)["tasks"][0]["certified"]


def test_cancel_finished_changes_nothing(service: Service, finished_job: dict[str, Any]) -> None:
    assert service.http.post(f"/api/v1/jobs/{finished_job['id']}/cancel").json() == finished_job


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
    # Another space is another question: the built-in one is searched, not answered from this.
    assert service.tuned(module, trials=4)["tasks"][0]["answered_from"] == "search"


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

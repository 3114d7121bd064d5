"""Bests that are raced anew: what may be asked for, and what is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from loopwright import schemas
from loopwright.codegen.kinds import JobState
from loopwright.results import evidence
from service.rechecks import jobs
from tests.integration.service.conftest import Api
from tests.integration.service.users import sign_up
from tests.support.played_fleet import MACHINE, play
from tests.support.programs import product

THERE = (MACHINE, "Linux 6.8")


@pytest.fixture
def workload(job: dict[str, Any]) -> str:
    """A workload with a certified best."""
    return str(job["tasks"][0]["workload_hash"])


@pytest.fixture
def asked(api: Api, workload: str) -> dict[str, Any]:
    """A queued job that is to race the best anew."""
    made: dict[str, Any] = api.post("/rechecks", {"workloads": [workload]}, status=202)
    return made


def test_a_best_is_raced_anew_when_a_user_asks(
    api: Api, asked: dict[str, Any], job: dict[str, Any], workload: str
) -> None:
    assert (asked["name"], asked["tasks"], asked["state"]) == ("recheck of a best", [], "queued")
    [found] = api.get(f"/jobs/{asked['id']}/rechecks")["items"]
    [task] = job["tasks"]
    assert (found["workload_hash"], found["record_id"]) == (workload, task["record_id"])
    assert (found["reason"], found["result"]) == ("a user asked", None)
    assert found["certified_best_us"] == pytest.approx(task["best_us"])
    assert api.get(f"/jobs/{job['id']}/rechecks")["items"] == []


def test_what_came_of_it_stands_at_the_best(api: Api, asked: dict[str, Any], workload: str) -> None:
    claimed = api.database.jobs.claim("test", 60)
    assert claimed is not None
    assert claimed.job.id == asked["id"]
    [view] = api.database.rechecks.of_job(asked["id"])
    result = {
        "verdict": "regression",
        "rounds": 3,
        "slowdown": {"value": 2.0, "low": 1.8, "high": 2.2},
        "best_us": 200.0,
        "baseline_us": 1000.0,
        "conditions": "tvm, Linux 6.8",
        "message": None,
    }
    for holds in (False, True):
        api.database.rechecks.store(
            asked["id"], claimed.lease_token, view.certificate_id, {**result, "verdict": "holds"} if holds else result,
            holds=holds,
        )  # fmt: skip
        [best] = api.get(f"/workloads/{workload}")["bests"]
        assert best["certificate"]["conditions"] == "tvm, Linux 6.8"
        assert best["certificate"]["checked_at"] is not None
        assert (best["certificate"]["regressed_at"] is None) is holds
        keys = evidence.by_id(schemas.SigningKey.model_validate(key) for key in api.get("/keys")["items"])
        evidence.check_best(schemas.Best.model_validate(best), keys)
        [recheck] = api.get(f"/jobs/{asked['id']}/rechecks")["items"]
        evidence.check_recheck(schemas.Recheck.model_validate(recheck), keys)
        [row] = [each for each in api.get("/best-schedules")["items"] if each["workload_hash"] == workload]
        assert row["regressed"] is not holds
    api.database.jobs.finish(asked["id"], claimed.lease_token, JobState.SUCCEEDED)
    events = api.http.get(f"/api/v1/jobs/{asked['id']}/events", headers=api.headers).text
    assert events.count("event: recheck") == 2


def test_what_cannot_be_raced_is_refused(api: Api, workload: str) -> None:
    for body, said in (
        ({"workloads": ["0" * 32]}, "best"),
        ({"workloads": []}, "workloads"),
        ({"workloads": ["x"]}, "workloads"),
        ({"workloads": [workload], "target": "nvidia/nvidia-a100"}, "nvidia-a100"),
    ):
        assert said in api.post("/rechecks", body, status=422)["detail"]


def test_a_job_that_raced_bests_has_no_module(api: Api, asked: dict[str, Any]) -> None:
    answer = api.http.get(f"/api/v1/jobs/{asked['id']}/module", headers=api.headers)
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:loopwright:no-module")
    assert api.post(f"/jobs/{asked['id']}/resubmit", {}, status=409)["type"] == "urn:loopwright:no-module"


def test_a_job_that_names_private_workloads_is_private(api: Api) -> None:
    made = api.submit(product(40), visibility="private", budget={"max_trials": 20})
    play(api.database, made["id"])
    [task] = api.get(f"/jobs/{made['id']}")["tasks"]
    asked = api.post("/rechecks", {"workloads": [task["workload_hash"]]}, status=202)
    assert asked["visibility"] == "private"
    other = sign_up(api, "prying")
    other.post("/rechecks", {"workloads": [task["workload_hash"]]}, 422)
    assert other.http.get(f"/api/v1/jobs/{asked['id']}/rechecks", headers=other.headers).status_code == 404


def test_one_job_at_a_time_races_what_is_due(api: Api, workload: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert jobs.submit_due(api.database, [], 1e-9) is None
    made = jobs.submit_due(api.database, [THERE], 1e-9)
    assert made is not None
    assert made.priority == -100
    assert workload in [view.workload_hash for view in api.database.rechecks.of_job(made.id)]
    assert jobs.submit_due(api.database, [THERE], 1e-9) is None
    # Two controllers may look at the same time.
    monkeypatch.setattr(api.database.rechecks, "ongoing", lambda: False)
    again = jobs.submit_due(api.database, [THERE], 1e-9)
    assert again is not None
    assert again.id == made.id

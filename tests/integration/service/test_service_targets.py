"""A submission for several targets: a job for each, all or none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.service.conftest import Api
from tests.integration.service.users import sign_up
from tests.support.played_fleet import MACHINE, TARGET
from tests.support.programs import product

PLAIN = {"kind": "llvm", "mcpu": "x86-64-v3"}


def test_a_job_is_stored_for_each_target(api: Api) -> None:
    body = {"module": {"format": "tvmscript", "data": product(140)}, "targets": ["auto", PLAIN], "name": "both"}
    answer = api.http.post("/api/v1/jobs", json=body, headers=api.headers)
    assert answer.status_code == 202, answer.text
    group = answer.json()
    own, plain = group["jobs"]
    assert own["device_class"] == MACHINE.id
    # The number of cores, which the target leaves out, is the machine's.
    assert plain["target"] == PLAIN | {"num-cores": 2}
    assert plain["device_class"] != own["device_class"]
    for job in group["jobs"]:
        assert (job["group"], job["name"], job["state"], job["budget"]["max_trials"]) == (
            group["id"],
            "both",
            "queued",
            64,
        )
    assert own["tasks"][0]["workload_hash"] == plain["tasks"][0]["workload_hash"]
    location = answer.headers["Location"]
    assert location == f"/api/v1/jobs?group={group['id']}"
    listed = api.get("/jobs", group=group["id"])["items"]
    assert [job["id"] for job in listed] == [own["id"], plain["id"]]
    entry = api.get("/audit")["items"][0]
    assert (entry["action"], entry["object"]) == ("submit_job", location)
    # One of them goes on without the other, and alone.
    assert api.post(f"/jobs/{own['id']}/cancel")["group"] == group["id"]
    assert api.get("/jobs", group=group["id"], state="queued")["items"][0]["id"] == plain["id"]
    again = api.post(f"/jobs/{plain['id']}/resubmit", {}, 202)
    assert (again["target"], again["group"]) == (plain["target"], None)


def test_math_that_a_target_does_not_have_is_refused(api: Api) -> None:
    problem = api.submit(product(232), 422, math="tf32")
    assert problem["type"].endswith("invalid-target")
    assert "tf32" in problem["detail"]
    plain = api.post("/jobs/preview", {"module": {"format": "tvmscript", "data": product(232)}, "math": "fp32"})
    assert [task["math"] for task in plain["tasks"]] == ["fp32"]


def test_one_target_is_no_group_and_a_list_of_one_is(api: Api) -> None:
    alone = api.submit(product(144), target=PLAIN)
    assert alone["group"] is None
    group = api.submit(product(144), targets=[PLAIN])
    assert [job["target"] for job in group["jobs"]] == [alone["target"]]


def test_the_same_key_gives_the_same_group(api: Api) -> None:
    headers = {"Idempotency-Key": "targets"}
    body = {"module": {"format": "tvmscript", "data": product(140)}, "targets": [PLAIN, "auto"]}
    first = api.post("/jobs", body, 202, headers)
    assert api.post("/jobs", body, 202, headers) == first
    other = body | {"targets": ["auto", PLAIN]}
    assert api.post("/jobs", other, 409, headers)["type"] == "urn:loopwright:idempotency-conflict"
    for job in first["jobs"]:
        assert api.post(f"/jobs/{job['id']}/cancel")["state"] == "cancelled"
    # Its jobs have ended, and are still what came of that request.
    assert [job["id"] for job in api.post("/jobs", body, 202, headers)["jobs"]] == [job["id"] for job in first["jobs"]]


@pytest.mark.parametrize(
    ("fields", "kind", "said"),
    [
        (
            {"targets": ["auto", "cuda", {"kind": "llvm", "mcpu": "znver4"}]},
            "target-not-offered",
            ["cuda", "znver4", "auto", TARGET],
        ),
        ({"targets": ["auto", PLAIN, "llvm -mcpu=x86-64-v3"]}, "same-target", ["2 and 3", "x86-64-v3"]),
        ({"targets": ["auto", {"kind": "hexagon"}]}, "invalid-target", ["hexagon"]),
        ({"targets": ["auto", PLAIN], "target": "llvm"}, "invalid-request", ["target"]),
        ({"targets": []}, "invalid-request", ["targets"]),
        ({"targets": ["auto"] * 9}, "invalid-request", ["targets", "8"]),
    ],
    ids=["no worker", "the same twice", "unknown", "both", "none", "too many"],
)
def test_a_target_that_cannot_be_stops_all_and_is_named(
    api: Api, fields: dict[str, Any], kind: str, said: list[str]
) -> None:
    before = api.get("/jobs")["items"]
    problem = api.submit(product(140), 422, **fields)
    assert problem["type"] == f"urn:loopwright:{kind}"
    for words in said:
        assert words in problem["detail"]
    assert api.get("/jobs")["items"] == before


def test_limits_of_a_user_count_each_target(api: Api) -> None:
    grace = sign_up(api, "grace", active_jobs=1)
    problem = grace.submit(product(140), 429, targets=["auto", PLAIN])
    assert problem["type"] == "urn:loopwright:quota-exceeded"
    assert grace.get("/jobs", owner="grace")["items"] == []
    grace.submit(product(140), target=PLAIN)


def test_a_preview_is_of_one_target(api: Api) -> None:
    body = {"module": {"format": "tvmscript", "data": product(140)}}
    problem = api.post("/jobs/preview", body | {"targets": ["auto", PLAIN]}, 422)
    assert problem["type"] == "urn:loopwright:invalid-request"
    assert api.post("/jobs/preview", body | {"target": PLAIN})["target"] == PLAIN | {"num-cores": 2}

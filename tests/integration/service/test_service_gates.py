"""What a job is compared with is resolved when it is submitted, and refused if it cannot race."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.service.conftest import Api
from tests.integration.service.users import sign_up
from tests.support.programs import product


def function(**changes: Any) -> dict[str, Any]:
    return {"name": "main", "workload_hash": "0" * 32, "weight": 1, "record_id": "none", **changes}


@pytest.fixture
def certified(api: Api, job: dict[str, Any]) -> dict[str, Any]:
    """A finished job with a certified best."""
    return job


def test_a_finished_job_is_a_reference_by_its_id_and_by_its_name(api: Api, certified: dict[str, Any]) -> None:
    [task] = certified["tasks"]
    for against in (certified["id"], certified["name"]):
        made = api.submit(product(8), gate={"against": against})
        state = api.get(f"/jobs/{made['id']}/gate")
        assert state["reference"] == [
            {
                "name": task["name"],
                "workload_hash": task["workload_hash"],
                "weight": task["weight"],
                "record_id": task["record_id"],
                "source": task["source"],
            }
        ]
        assert (state["against"], state["max_slowdown"], state["result"]) == (certified["id"], 0.03, None)
    assert api.get(f"/jobs/{certified['id']}/gate") is None


def test_recorded_functions_are_a_reference(api: Api, certified: dict[str, Any]) -> None:
    [task] = certified["tasks"]
    recorded = function(workload_hash=task["workload_hash"], record_id=task["record_id"], weight=3)
    made = api.submit(product(8), gate={"against": [recorded], "max_slowdown": 0.1})
    state = api.get(f"/jobs/{made['id']}/gate")
    reference = [recorded | {"source": None}]
    assert (state["against"], state["reference"], state["max_slowdown"]) == ("functions", reference, 0.1)


def test_a_private_job_is_no_reference_for_others_and_its_gate_is_not_seen(api: Api, certified: dict[str, Any]) -> None:
    owner, other = sign_up(api, "gatekeeper"), sign_up(api, "passer")
    made = owner.submit(product(8), visibility="private", name="secret", gate={"against": certified["id"]})
    assert other.http.get(f"/api/v1/jobs/{made['id']}/gate", headers=other.headers).status_code == 404
    for against in (made["id"], "secret"):
        assert other.submit(product(8), 422, gate={"against": against})["type"] == "urn:loopwright:no-reference"


def test_what_cannot_race_is_refused_and_nothing_is_stored(api: Api, certified: dict[str, Any]) -> None:
    [task] = certified["tasks"]
    queued = api.submit(product(8), name="not yet")
    before = api.get("/jobs")["items"]
    for gate, kind, token in (
        ({"against": "nobody"}, "no-reference", "nobody"),
        ({"against": queued["id"]}, "no-reference", "queued"),
        ({"against": "not yet"}, "no-reference", "not yet"),
        ({"against": [function()]}, "no-reference", "none"),
        ({"against": [function(record_id=task["record_id"])]}, "no-reference", task["record_id"]),
        ({"against": []}, "invalid-request", "against"),
        ({"against": [function(weight=0)]}, "invalid-request", "weight"),
        ({"against": certified["id"], "max_slowdown": -1}, "invalid-request", "max_slowdown"),
    ):
        problem = api.submit(product(8), 422, gate=gate)
        assert (problem["type"], token in problem["detail"]) == (f"urn:loopwright:{kind}", True), problem
    assert api.get("/jobs")["items"] == before


def test_a_reference_of_another_model_is_refused(api: Api, certified: dict[str, Any]) -> None:
    other = product(8).replace("def main", "def other")
    problem = api.submit(other, 422, gate={"against": certified["id"]})
    assert problem["type"] == "urn:loopwright:no-reference"
    assert f"job {certified['id']}, has no function in common with this model" in problem["detail"]


def test_the_name_of_a_reference_is_that_of_a_job_of_ones_own(api: Api, certified: dict[str, Any]) -> None:
    other = sign_up(api, "namesake")
    problem = other.submit(product(8), 422, gate={"against": certified["name"]})
    assert "nor the name of a job of namesake that succeeded" in problem["detail"]
    assert other.submit(product(8), 202, gate={"against": certified["id"]})["state"] == "queued"


def test_no_job_is_called_main_unless_asked(api: Api) -> None:
    made = api.submit(product(9))
    assert made["name"] == f"function {made['tasks'][0]['workload_hash'][:8]}"
    assert api.submit(product(9), name="main")["name"] == "main"
    named = api.get("/jobs", name=made["name"])["items"]
    assert made["id"] in [each["id"] for each in named]
    assert {each["name"] for each in named} == {made["name"]}

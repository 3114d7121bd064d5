"""Users have tokens, jobs, limits and privacy of their own; what they change is written down."""

from __future__ import annotations

from typing import Any

import pytest

from loopwright.codegen.kinds import JobState
from tests.integration.service.conftest import Api
from tests.integration.service.users import sign_up
from tests.support.programs import product
from workers.walls.levels import Level


@pytest.fixture(scope="module")
def ada(api: Api) -> Api:
    return sign_up(api, "ada")


@pytest.fixture(scope="module")
def bob(api: Api) -> Api:
    return sign_up(api, "bob")


def refused(api: Api, method: str, path: str, status: int, body: Any = None) -> str:
    """What the problem says."""
    answer = api.http.request(method, f"/api/v1{path}", headers=api.headers, json=body)
    assert answer.status_code == status, answer.text
    return str(answer.json()["detail"])


def test_a_job_is_its_users(api: Api, ada: Api, bob: Api) -> None:
    job = ada.submit(product(8))
    assert (job["owner"], job["visibility"]) == ("ada", "team")
    assert job["id"] in [each["id"] for each in bob.get("/jobs", owner="ada")["items"]]
    assert job["id"] not in [each["id"] for each in bob.get("/jobs", owner="bob")["items"]]
    assert "ada's" in refused(bob, "POST", f"/jobs/{job['id']}/cancel", 403)
    assert ada.post(f"/jobs/{job['id']}/cancel")["state"] == "cancelled"
    other = ada.submit(product(8))
    assert api.post(f"/jobs/{other['id']}/cancel")["state"] == "cancelled"


def test_a_private_job_is_not_there_for_others(api: Api, ada: Api, bob: Api) -> None:
    job = ada.submit(product(24), visibility="private")
    workload = job["tasks"][0]["workload_hash"]
    guest = api.with_token(api.post("/guest-links", {}, status=201)["token"])
    for other in (bob, guest):
        for path in ("", "/trials", "/events", "/records", "/module", "/chrome-trace"):
            refused(other, "GET", f"/jobs/{job['id']}{path}", 404)
        for path in ("", "/history", "/decisions"):
            refused(other, "GET", f"/workloads/{workload}{path}", 404)
        assert job["id"] not in [each["id"] for each in other.get("/jobs")["items"]]
    refused(bob, "POST", f"/jobs/{job['id']}/cancel", 404)
    refused(bob, "POST", f"/jobs/{job['id']}/resubmit", 404, {})
    for friend in (ada, api):
        assert friend.get(f"/workloads/{workload}")["hash"] == workload
        assert friend.get(f"/jobs/{job['id']}")["visibility"] == "private"
    again = ada.post(f"/jobs/{job['id']}/resubmit", {}, 202)
    assert again["visibility"] == "private"


def test_a_limit_is_said_with_what_is_used(api: Api) -> None:
    erin = sign_up(api, "erin", active_jobs=1, daily_trials=100)
    job = erin.submit(product(8), budget={"max_trials": 60})
    use = erin.get("/use")
    assert (use["user"], use["active_jobs"], use["pending_trials"], use["today"]["jobs"]) == ("erin", 1, 60, 1)
    assert use["quota"] == {
        "active_jobs": 1,
        "daily_trials": 100,
        "daily_device_seconds": None,
        "daily_bytes": None,
    }
    body = {"module": {"format": "tvmscript", "data": product(8)}}
    refused(erin, "POST", "/jobs", 429, body)
    erin.post(f"/jobs/{job['id']}/cancel")
    answer = erin.http.post("/api/v1/jobs", headers=erin.headers, json=body | {"budget": {"max_trials": 101}})
    assert (answer.status_code, answer.json()["type"]) == (429, "urn:loopwright:quota-exceeded")
    assert 0 < int(answer.headers["Retry-After"]) <= 86401
    assert (
        api.http.patch("/api/v1/users/erin", headers=api.headers, json={"quota": {}}).json()["quota"]["daily_trials"]
        is None
    )
    erin.submit(product(8), budget={"max_trials": 101})
    assert api.get("/users/erin/use")["today"]["jobs"] == 2


def test_only_admins_pass_others_in_the_queue(api: Api, ada: Api) -> None:
    body = {"module": {"format": "tvmscript", "data": product(8)}, "priority": 1}
    assert "priority" in refused(ada, "POST", "/jobs", 403, body)
    urgent = api.submit(product(8), priority=5)
    again = ada.post(f"/jobs/{urgent['id']}/resubmit", {}, 202)
    assert again["priority"] == 0


def test_a_token_is_shown_once_and_makes_none_that_may_more(api: Api, ada: Api) -> None:
    made = ada.post("/tokens", {"name": "notebook", "scope": "read", "days": 30}, status=201)
    reader = ada.with_token(made["secret"])
    listed = ada.get("/tokens")["items"]
    assert made["token"] in listed
    assert {token["user"] for token in listed} == {"ada"}
    assert made["secret"] not in str(listed)
    assert reader.get("/me")["rights"] == ["read"]
    assert "submit" in refused(reader, "POST", "/tokens", 403, {"name": "more"})
    refused(reader, "GET", "/tokens", 403)
    refused(ada, "POST", "/tokens", 403, {"name": "more", "scope": "admin"})
    refused(ada, "POST", "/tokens", 403, {"name": "of another", "user": "owner"})
    refused(ada, "GET", "/tokens?all=true", 403)
    assert {token["user"] for token in api.get("/tokens", all=True, page_size=500)["items"]} >= {"ada", "owner"}
    assert ada.http.delete(f"/api/v1/tokens/{made['token']['id']}", headers=ada.headers).status_code == 200
    assert reader.http.get("/api/v1/me", headers=reader.headers).status_code == 401


def test_nobody_ends_the_tokens_of_another_but_an_admin(api: Api, ada: Api, bob: Api) -> None:
    token = next(each for each in ada.get("/tokens")["items"] if each["revoked_at"] is None)
    refused(bob, "DELETE", f"/tokens/{token['id']}", 404)
    assert ada.get("/me")["user"] == "ada"
    owners = next(each for each in api.get("/tokens", page_size=500)["items"] if each["kind"] == "owner")
    assert "data directory" in refused(api, "DELETE", f"/tokens/{owners['id']}", 409)


@pytest.mark.parametrize("name", ["", "Ada", "a b", "-a", "a" * 41, "a/b", "ada\n", "\u00e4da"])
def test_a_users_name_is_plain(api: Api, name: str) -> None:
    refused(api, "POST", "/users", 422, {"name": name})


def test_users_are_made_and_changed_by_admins_alone(api: Api, ada: Api) -> None:
    refused(api, "POST", "/users", 409, {"name": "ada"})
    for method, path, body in (
        ("GET", "/users", None),
        ("POST", "/users", {"name": "mallory"}),
        ("PATCH", "/users/ada", {"role": "admin"}),
        ("GET", "/users/owner/use", None),
        ("GET", "/audit", None),
    ):
        assert "administer" in refused(ada, method, path, 403, body)
    refused(api, "PATCH", "/users/owner", 409, {"disabled": True})
    refused(api, "PATCH", "/users/nobody", 404, {"disabled": True})


def test_a_service_without_walls_takes_no_other_user(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api.http.app.state.context.sandbox, "level", Level.NONE)  # type: ignore[attr-defined]
    assert "LOOPWRIGHT_SANDBOX=off" in refused(api, "POST", "/users", 409, {"name": "heidi"})
    assert "heidi" not in [user["name"] for user in api.get("/users")["items"]]


def test_what_is_changed_and_refused_is_written_down(api: Api) -> None:
    frank = sign_up(api, "frank")
    job = frank.submit(product(8))
    refused(frank, "GET", "/users", 403)
    frank.post(f"/jobs/{job['id']}/cancel")
    frank.get("/jobs")
    refused(frank, "POST", "/jobs", 422, {})
    entries = [entry for entry in api.get("/audit")["items"] if entry["user"] == "frank"]
    assert [(entry["action"], entry["object"], entry["status"]) for entry in entries] == [
        ("cancel_job", f"/api/v1/jobs/{job['id']}/cancel", 200),
        ("list_users", "/api/v1/users", 403),
        ("submit_job", f"/api/v1/jobs/{job['id']}", 202),
    ]
    made = next(entry for entry in api.get("/audit")["items"] if entry["action"] == "make_user")
    assert (made["user"], made["status"]) == ("owner", 201)
    assert "secret" not in str(entries)


def test_where_a_controller_runs_is_for_admins(api: Api, ada: Api) -> None:
    job = ada.submit(product(8))
    claimed = api.database.jobs.claim("host:/data", 60)
    assert claimed is not None
    assert [lease["owner"] for lease in api.get("/leases")["items"]] == ["host:/data"]
    assert [lease["owner"] for lease in ada.get("/leases")["items"]] == [None]
    api.database.jobs.finish(job["id"], claimed.lease_token, JobState.CANCELLED)

"""Answers that callers have already: who may not see one is not told that it is the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.service.conftest import Api
from tests.integration.service.users import sign_up
from tests.support.programs import product


def ask(api: Api, path: str, tag: str | None = None) -> Any:
    headers = api.headers if tag is None else api.headers | {"If-None-Match": tag}
    return api.http.get(f"/api/v1{path}", headers=headers)


def tag_of(api: Api, path: str) -> str:
    answer = ask(api, path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    return str(answer.headers["ETag"])


@pytest.fixture(scope="module")
def ada(api: Api) -> Api:
    return sign_up(api, "ada-who-polls")


@pytest.fixture(scope="module")
def bob(api: Api) -> Api:
    return sign_up(api, "bob-who-polls", role="admin")


PATHS = [
    *("/jobs", "/jobs/{job}", "/jobs/{job}/trials", "/overview", "/best-schedules?sort=peak"),
    "/best-schedules/filters",
    *("/best-schedules.csv", "/records?workload_hash={workload}", "/bests?workload_hash={workload}", "/workloads"),
    *("/workloads/{workload}", "/workloads/{workload}/history", "/workloads/{workload}/predictions", "/keys"),
    *("/workers", "/device-classes", "/targets", "/leases"),
]


@pytest.mark.parametrize("path", PATHS)
def test_a_caller_that_polls_is_sent_nothing_until_it_changes(
    api: Api, ada: Api, job: dict[str, Any], path: str
) -> None:
    path = path.format(job=job["id"], workload=job["tasks"][0]["workload_hash"])
    whole = ask(ada, path)
    same = ask(ada, path, whole.headers["ETag"])
    assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", whole.headers["ETag"])
    assert ask(ada, path, '"another"').content == whole.content
    assert ask(api.with_token("nobody's"), path, whole.headers["ETag"]).status_code == 401


def test_what_changes_is_sent(api: Api, ada: Api) -> None:
    job = ada.submit(product(8))
    paths = (f"/jobs/{job['id']}", "/jobs?page_size=1", "/overview")
    tags = [tag_of(ada, path) for path in paths]
    ada.post(f"/jobs/{job['id']}/cancel")
    for path, tag in zip(paths, tags, strict=True):
        answer = ask(ada, path, tag)
        assert answer.status_code == 200
        assert answer.headers["ETag"] != tag
    assert ask(ada, paths[0]).json()["state"] == "cancelled"


def test_a_tag_of_what_is_private_is_of_no_use_to_others(api: Api, ada: Api) -> None:
    other = sign_up(api, "eve-who-polls")
    before = ask(other, "/jobs").content
    job = ada.submit(product(40), visibility="private")
    for path in (f"/jobs/{job['id']}", f"/jobs/{job['id']}/trials", f"/workloads/{job['tasks'][0]['workload_hash']}"):
        for tag in (tag_of(ada, path), "*"):
            assert ask(other, path, tag).status_code == 404
    listed = ask(other, "/jobs", tag_of(ada, "/jobs"))
    assert listed.status_code == 200
    assert listed.content == before
    assert job["id"] in ask(ada, "/jobs").text
    ada.post(f"/jobs/{job['id']}/cancel")


def test_who_may_see_less_than_before_is_sent_less(api: Api, ada: Api, bob: Api) -> None:
    job = ada.submit(product(48), visibility="private")
    tags = {path: tag_of(bob, path) for path in ("/jobs", f"/jobs/{job['id']}")}
    assert ask(bob, "/jobs", tags["/jobs"]).status_code == 304
    changed = api.http.patch("/api/v1/users/bob-who-polls", headers=api.headers, json={"role": "submit"})
    assert changed.status_code == 200, changed.text
    answer = ask(bob, "/jobs", tags["/jobs"])
    assert answer.status_code == 200
    assert job["id"] not in answer.text
    assert ask(bob, f"/jobs/{job['id']}", tags[f"/jobs/{job['id']}"]).status_code == 404
    api.http.patch("/api/v1/users/bob-who-polls", headers=api.headers, json={"disabled": True})
    assert ask(bob, "/jobs", answer.headers["ETag"]).status_code == 401
    ada.post(f"/jobs/{job['id']}/cancel")


def test_an_invalid_request_has_no_tag(ada: Api) -> None:
    answer = ask(ada, "/best-schedules?limit=0", "*")
    assert answer.status_code == 422
    assert "ETag" not in answer.headers

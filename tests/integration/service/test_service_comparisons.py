"""Comparisons with other engines are stored with a job, by its owner, and shown to whoever sees the job."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.service.conftest import Api
from tests.integration.service.users import sign_up
from tests.support.comparisons import comparison, engine
from tests.support.programs import product


def put(api: Api, job_id: str, body: Any, status: int = 200) -> Any:
    answer = api.http.put(f"/api/v1/jobs/{job_id}/comparison", json=body, headers=api.headers)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_the_owner_stores_a_comparison_and_others_see_it(api: Api) -> None:
    owner, other = sign_up(api, "compares"), sign_up(api, "looks")
    job_id = owner.submit(product(8))["id"]
    assert other.get(f"/jobs/{job_id}/comparison") is None
    put(owner, job_id, comparison(machine="an earlier one"))
    stored = put(owner, job_id, comparison())
    assert other.get(f"/jobs/{job_id}/comparison") == stored
    assert stored["user"] == "compares"
    assert {name: value for name, value in stored.items() if name not in ("user", "created_at")} == comparison()
    assert put(other, job_id, comparison(), 403)["type"] == "urn:loopwright:not-yours"
    assert put(api, job_id, comparison())["user"] == "owner"  # an admin


def test_a_private_jobs_comparison_is_private(api: Api) -> None:
    owner, other = sign_up(api, "secretive"), sign_up(api, "curious")
    job_id = owner.submit(product(8), visibility="private")["id"]
    put(owner, job_id, comparison())
    answer = other.http.get(f"/api/v1/jobs/{job_id}/comparison", headers=other.headers)
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (comparison(engines=[]), "engines"),
        (comparison(threads=0), "threads"),
        (comparison(engines=[engine("loopwright", "Loopwright", -1.0)]), "us"),
        (comparison(engines=[engine("x", "x" * 51, 1.0)]), "title"),
        (comparison(engines=[engine("torch", "PyTorch", 1.0)] * 17), "engines"),
        (comparison(unknown=1), "unknown"),
    ],
)
def test_what_is_no_comparison_is_refused(api: Api, job: dict[str, Any], body: Any, said: str) -> None:
    assert said in put(api, job["id"], body, 422)["detail"]

"""Each request has an id: in its answer, in the log, and in problems that are the service's own fault."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from service.logs.ids import known
from tests.integration.service.conftest import Api, running, settings_in


@pytest.mark.parametrize("given", ["a", "0af7651916cd43dd-8448:eb.2_1", "A" * 64])
def test_the_callers_id_is_taken(api: Api, given: str) -> None:
    answer = api.http.get("/api/v1/jobs", headers={**api.headers, "X-Request-Id": given})
    assert answer.headers["X-Request-Id"] == given


@pytest.mark.parametrize("given", ["", " ", "A" * 65, "a b", "a;b", 'a"b', "<a>", "a,b"])
def test_an_id_that_is_not_well_formed_is_replaced(api: Api, given: str) -> None:
    answer = api.http.get("/api/v1/jobs", headers={**api.headers, "X-Request-Id": given})
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["X-Request-Id"])


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/none", "/page", "/api/v1/jobs"])
def test_every_answer_has_an_id_of_its_own(api: Api, path: str) -> None:
    ids = {api.http.get(path).headers["X-Request-Id"] for _ in range(3)}
    assert len(ids) == 3


def test_a_problem_of_the_caller_needs_no_id(api: Api) -> None:
    assert "request_id" not in api.http.get("/api/v1/jobs").json()


def test_a_fault_is_answered_with_the_id_that_the_log_has(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def fail(_: object) -> None:
        seen.append(known()["request"])
        raise RuntimeError("broken")

    monkeypatch.setattr("db.jobs.jobs.Jobs.leases", fail)
    # Without "with": the application is running already.
    http = TestClient(api.http.app, base_url="http://service", raise_server_exceptions=False)
    answer = http.get("/api/v1/leases", headers={**api.headers, "X-Request-Id": "r1"})
    assert answer.status_code == 500
    assert answer.headers["X-Request-Id"] == answer.json()["request_id"] == "r1"
    assert "r1" in answer.json()["detail"]
    assert seen == ["r1"]


@pytest.mark.usefixtures("no_tvm")
def test_a_request_is_a_line_of_the_log_if_asked_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "loopwright.requests")
    with running(settings_in(tmp_path).model_copy(update={"log_requests": True})) as logging_api:
        logging_api.http.get("/api/v1/jobs/a-secret", headers=logging_api.headers)
        logging_api.http.get("/api/v1/jobs")
        logging_api.http.get("/healthz")
    found, refused = (record for record in caplog.records if record.name == "loopwright.requests")
    assert re.fullmatch(r"GET /api/v1/jobs/\{job_id\} 404 in \d+\.\d ms", found.getMessage())
    assert vars(found).items() >= {"status": 404, "user": "owner", "route": "/api/v1/jobs/{job_id}"}.items()
    assert vars(refused).items() >= {"status": 401, "user": None, "route": "other"}.items()
    assert "a-secret" not in caplog.text


def test_requests_are_not_logged_unless_asked_for(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "loopwright.requests")
    api.get("/jobs")
    assert not [record for record in caplog.records if record.name == "loopwright.requests"]

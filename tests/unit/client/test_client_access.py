"""Users and tokens in the SDK and on the command line; what old names do to a terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loopwright import Client
from loopwright.errors import TooManyRequests
from tests.unit.client.conftest import Command
from tests.unit.client.fake_service import FakeService, job_json, page, problem

TOKEN: dict[str, Any] = {
    "id": "t1",
    "user": "ada",
    "kind": "token",
    "name": "ci",
    "scope": "submit",
    "created_at": "2030-01-01T00:00:00Z",
    "expires_at": None,
    "revoked_at": None,
    "used_at": None,
}
QUOTA = {"active_jobs": 50, "daily_trials": 1000, "daily_device_seconds": None, "daily_bytes": None}
USER = {"name": "ada", "role": "submit", "quota": QUOTA, "created_at": "2030-01-01T00:00:00Z", "disabled_at": None}
DAY = {"day": "2030-01-01", "jobs": 1, "trials": 64, "device_seconds": 12.4, "bytes": 2048}
USE = {"user": "ada", "quota": QUOTA, "active_jobs": 2, "pending_trials": 36, "today": DAY, "days": [DAY]}


def sent(service: FakeService) -> Any:
    return service.requests[-1].json()


def test_a_tokens_secret_is_printed_alone(service: FakeService, run: Command) -> None:
    service.on("POST", "/api/v1/tokens", {"token": TOKEN, "secret": "lw_s3cret"})
    assert run("token", "create", "ci", "--scope", "read", "--days", "7").out == "lw_s3cret\n"
    assert sent(service) == {"name": "ci", "scope": "read", "days": 7, "user": None}


def test_tokens_are_listed_with_their_end(service: FakeService, run: Command) -> None:
    ended = TOKEN | {"id": "t2", "revoked_at": "2030-02-01T12:00:00Z", "used_at": "2030-01-31T10:00:00Z"}
    service.on("GET", "/api/v1/tokens", page(TOKEN, ended))
    lines = run("token", "list").out.splitlines()
    assert lines[1].split()[-4:] == ["submit", "never", "no", "expiry"]
    assert lines[2].split()[-5:] == ["2030-01-31", "10:00", "revoked", "2030-02-01", "12:00"]


def test_a_user_is_made_with_a_first_token(service: FakeService, run: Command) -> None:
    service.on("POST", "/api/v1/users", USER)
    service.on("PATCH", "/api/v1/users/ada", USER)
    service.on("POST", "/api/v1/tokens", {"token": TOKEN, "secret": "lw_s3cret"})
    done = run("user", "create", "ada", "--limit", "daily_trials=5", "--limit", "active_jobs=none")
    assert done.out == "lw_s3cret\n"
    change = next(request for request in service.requests if request.method == "PATCH")
    assert change.json()["quota"] == QUOTA | {"daily_trials": 5, "active_jobs": None}
    assert sent(service)["user"] == "ada"


@pytest.mark.parametrize("limit", ["trials=5", "daily_trials", "daily_trials=many", "daily_trials=-1", "daily_trials="])
def test_a_wrong_limit_changes_nothing(service: FakeService, run: Command, limit: str) -> None:
    service.on("GET", "/api/v1/users/ada/use", USE)
    assert run("user", "change", "ada", "--limit", limit).status == 2
    assert [request.method for request in service.requests] == ["GET"]


def test_use_is_shown_beside_the_limits(service: FakeService, run: Command) -> None:
    service.on("GET", "/api/v1/use", USE)
    out = run("user", "use").out
    assert "ada: 2 active jobs, which may make 36 more trials" in out
    rows = [line.split() for line in out.splitlines()]
    assert ["trials", "a", "day", "100", "1,000"] in rows
    assert ["device", "seconds", "a", "day", "12", "-"] in rows


def test_the_dashboards_address_signs_in(service: FakeService, run: Command) -> None:
    made = {"code": "lw_c", "path": "/#code=lw_c", "expires_at": "2030-01-01T00:00:00Z"}
    service.on("POST", "/api/v1/login-codes", made)
    assert run("dashboard").out == f"{service.url}/#code=lw_c\n"


def test_the_audit_log_is_listed(service: FakeService, run: Command) -> None:
    entry = {"at": "2030-01-01T00:00:01Z", "user": "ada", "token_id": "t1", "action": "submit_job"}
    service.on("GET", "/api/v1/audit", page(entry | {"object": "/api/v1/jobs/j", "status": 202, "address": "::1"}))
    line = run("audit").out.splitlines()[1]
    assert line.split() == ["2030-01-01", "00:00:01", "ada", "submit_job", "/api/v1/jobs/j", "202", "::1"]


def test_controls_in_old_names_do_not_reach_the_terminal(service: FakeService, run: Command) -> None:
    service.on("GET", "/api/v1/jobs", page(job_json(name="\x1b[2J\x1b]8;;http://evil\x07x\u202e")))
    out = run("job", "list").out
    assert "\ufffd[2J\ufffd]8;;http://evil\ufffdx\ufffd" in out
    assert not set(out) & {"\x1b", "\x07", "\u202e"}


def test_a_limit_of_a_day_is_not_waited_for(service: FakeService) -> None:
    refusal = problem(429, "Quota exceeded", "Your limit is 100 trials a day")
    service.on("GET", "/api/v1/jobs", replace(refusal, headers=refusal.headers | {"Retry-After": "3600"}))
    with Client(service.url, "t") as client, pytest.raises(TooManyRequests, match="100"):
        next(client.jobs())
    assert len(service.requests) == 1

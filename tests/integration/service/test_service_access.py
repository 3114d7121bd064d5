"""The owner may all, a guest may read, a stranger nothing; strangers' requests are not read."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message

from db.states import Scope
from loopwright.codegen.kinds import TokenKind
from tests.integration.service.conftest import OWNER, Api, running, settings_in


@pytest.fixture(scope="module")
def guest(api: Api) -> dict[str, str]:
    link = api.post("/guest-links", {"days": 2}, status=201)
    assert link["path"] == f"/#guest={link['token']}"
    ends = datetime.fromisoformat(link["expires_at"])
    assert timedelta(days=2) - (ends - datetime.now(UTC)) < timedelta(minutes=10)
    return {"Authorization": f"Bearer {link['token']}"}


def test_who_one_is(api: Api, guest: dict[str, str]) -> None:
    owner = api.get("/me")
    assert (owner["user"], owner["kind"], owner["scope"], owner["expires_at"]) == ("owner", "owner", "admin", None)
    assert {"invite", "administer"} <= set(owner["rights"])
    visitor = api.http.get("/api/v1/me", headers=guest).json()
    assert (visitor["kind"], visitor["scope"], visitor["rights"]) == ("guest", "read", ["read"])


@pytest.mark.parametrize(
    "path", ["/overview", "/best-schedules", "/best-schedules.csv", "/jobs", "/workers", "/records/export"]
)
def test_a_guest_reads(api: Api, guest: dict[str, str], path: str) -> None:
    assert api.http.get(f"/api/v1{path}", headers=guest).status_code == 200


def test_a_guest_changes_nothing(api: Api, guest: dict[str, str]) -> None:
    answer = api.http.post("/api/v1/jobs", headers=guest, json={})
    assert answer.status_code == 403
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:loopwright:guests-only-read"


@pytest.mark.parametrize("token", [None, "", "wrong", "guest.99999999999.0", "owner's"])
def test_a_stranger_gets_nothing(api: Api, token: str | None) -> None:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    answer = api.http.get("/api/v1/me", headers=headers)
    assert answer.status_code == 401
    assert answer.json()["type"] == "urn:loopwright:unauthorised"
    assert "Authorization: Bearer" in answer.json()["detail"]
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_link_ends(api: Api) -> None:
    hour = timedelta(hours=1)
    _, past = api.database.tokens.create("owner", TokenKind.GUEST, "", Scope.READ, -hour)
    link = api.post("/guest-links", {}, status=201)
    revoked = api.http.delete(f"/api/v1/tokens/{link['id']}", headers=api.headers)
    assert revoked.json()["revoked_at"] is not None
    for token in (past, link["token"]):
        answer = api.http.get("/api/v1/me", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 401
        assert answer.json()["type"] == "urn:loopwright:link-expired"


@pytest.mark.parametrize("days", [0, 366, "many"])
def test_a_link_lasts_a_year_at_most(api: Api, days: Any) -> None:
    api.post("/guest-links", {"days": days}, status=422)


@pytest.mark.usefixtures("no_tvm")
def test_without_the_setting_there_are_no_guests(tmp_path: Path, guest: dict[str, str]) -> None:
    with running(settings_in(tmp_path).model_copy(update={"guests": False})) as alone:
        http = alone.http
        owner = {"Authorization": f"Bearer {OWNER}"}
        refused = http.post("/api/v1/guest-links", headers=owner, json={})
        assert refused.status_code == 403
        assert "LOOPWRIGHT_GUESTS" in refused.json()["detail"]
        assert http.get("/api/v1/me", headers=guest).status_code == 401
        assert "invite" not in http.get("/api/v1/me", headers=owner).json()["rights"]


def test_nothing_of_a_strangers_body_is_read(api: Api) -> None:
    """Parsed first, 30 MB of lists in lists held up every other request for 23 s."""
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the body was read")

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": "/api/v1/jobs",
        "query_string": b"",
        "headers": [(b"host", b"service"), (b"content-type", b"application/json"), (b"authorization", b"Bearer wrong")],
    }

    async def ask() -> None:
        await api.http.app(scope, receive, send)

    # In a thread of its own: a browser test before this one leaves a running loop in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, ask()).result()
    assert sent[0]["status"] == 401


@pytest.mark.parametrize("path", ["/%00", "/x%00.js", "/assets/%00.js", f"/{'a' * 300}", f"/assets/{'a' * 300}.js"])
def test_a_name_that_no_file_can_have_is_not_found(api: Api, path: str) -> None:
    answer = api.http.get(path)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"

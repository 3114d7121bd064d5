"""Event streams of one caller have a limit, and those of all; requests are answered however many there are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import httpx
import pytest

from service.api import sandbox
from tests.contract.db.conftest import Clock, World
from tests.support.served_api import TOKEN, ServedApi, served
from tests.support.waiting import wait_for
from workers.walls.levels import Policy


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedApi]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "PRELOAD", ["tests.support.faults"])  # streams read no modules
        folder = tmp_path_factory.mktemp("api")
        with served(folder, sandbox=Policy.OFF, max_streams_per_user=4, max_streams=6) as api:
            yield api


@pytest.fixture
def api(served_api: ServedApi) -> ServedApi:
    """An API without streams: one that has ended keeps its place until the API has seen it."""
    wait_for("the end of all streams", lambda: served_api.context.streams.taken == 0)
    return served_api


@pytest.fixture(scope="module")
def events(served_api: ServedApi) -> str:
    """The path of the events of a job that runs on."""
    job, _ = World(served_api.database, Clock()).started()
    return f"/api/v1/jobs/{job.job.id}/events"


@contextlib.contextmanager
def _stream(api: ServedApi, events: str, token: str = TOKEN) -> Iterator[httpx.Response]:
    with api.http.stream("GET", events, headers={"Authorization": f"Bearer {token}"}) as answer:
        yield answer


def test_the_streams_of_one_user_are_counted_until_they_end(api: ServedApi, events: str) -> None:
    with contextlib.ExitStack() as streams:
        for _ in range(4):
            assert streams.enter_context(_stream(api, events)).status_code == 200
        refusal = api.http.get(events)
        assert (refusal.status_code, refusal.headers["Retry-After"]) == (429, "1")
        assert refusal.json()["type"] == "urn:loopwright:too-many-requests"
        assert api.http.get("/api/v1/jobs").status_code == 200
    wait_for("the places of the streams", lambda: _is_accepted(api, events))


def test_all_streams_together_are_counted(api: ServedApi, events: str) -> None:
    guests = [api.http.post("/api/v1/guest-links", json={}).json()["token"] for _ in range(3)]
    with contextlib.ExitStack() as streams:
        for token in (*guests[:2], *guests[:2], *guests[:2]):
            assert streams.enter_context(_stream(api, events, token)).status_code == 200
        with _stream(api, events, guests[2]) as refusal:
            assert (refusal.status_code, refusal.headers["Retry-After"]) == (503, "2")
            assert refusal.read().find(b"urn:loopwright:busy") > 0


def test_a_stream_of_no_job_takes_no_place(api: ServedApi, events: str) -> None:
    for _ in range(8):
        assert api.http.get("/api/v1/jobs/none/events").status_code == 404
    assert _is_accepted(api, events)


def _is_accepted(api: ServedApi, events: str) -> bool:
    with _stream(api, events) as answer:
        return answer.status_code == 200

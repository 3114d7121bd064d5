"""Health and who may ask are answered though all threads that answer requests are busy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from db.database import Database
from service.api import sandbox
from tests.support.served_api import ServedApi, served
from tests.support.waiting import wait_for
from workers.walls.levels import Policy


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedApi]:
    monkeypatch.setattr(sandbox, "PRELOAD", ["tests.support.faults"])
    with served(tmp_path, sandbox=Policy.OFF) as api:
        yield api


def test_health_waits_for_no_thread(api: ServedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    waiting: list[None] = []

    def ping(_: Database) -> None:
        waiting.append(None)
        done.wait()

    monkeypatch.setattr(Database, "ping", ping)
    with ThreadPoolExecutor(60) as pool:
        try:
            answers = [pool.submit(httpx.get, f"{api.http.base_url}/readyz", timeout=90) for _ in range(60)]
            wait_for("all threads to be busy", lambda: len(waiting) == 40)
            assert api.http.get("/healthz").json() == {"status": "ok"}
            assert api.http.get("/api/v1/jobs", headers={"Authorization": "Bearer x"}).status_code == 401
        finally:
            done.set()
        assert {answer.result().status_code for answer in answers} == {503}

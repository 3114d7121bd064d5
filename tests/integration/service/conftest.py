"""The API itself, on SQLite, with real sandboxes; the fleet is played by the tests, which write what it would."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from db import Database, migrate
from service.api import sandbox
from service.app import create_app
from service.settings import Settings
from tests.support import played_fleet
from tests.support.programs import product

OWNER = "owner's token"


@dataclass
class Api:
    """A client that bears the owner's token, and the database behind it."""

    http: TestClient
    database: Database
    headers: dict[str, str] = field(default_factory=lambda: {"Authorization": f"Bearer {OWNER}"})

    def with_token(self, secret: str) -> Api:
        """The same with another token."""
        return Api(self.http, self.database, {"Authorization": f"Bearer {secret}"})

    def get(self, path: str, **query: Any) -> Any:
        answer = self.http.get(f"/api/v1{path}", params=query, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None, status: int = 200, headers: dict[str, str] | None = None) -> Any:
        answer = self.http.post(f"/api/v1{path}", json=body, headers=self.headers | (headers or {}))
        assert answer.status_code == status, answer.text
        return answer.json()

    def submit(self, script: str, status: int = 202, **fields: Any) -> Any:
        return self.post("/jobs", {"module": {"format": "tvmscript", "data": script}, **fields}, status)


def settings_in(folder: Path) -> Settings:
    return Settings(data_dir=folder, token=OWNER, guests=True, allowed_hosts="service")


@contextlib.contextmanager
def running(settings: Settings) -> Iterator[Api]:
    """Run an application of its own, with a played worker."""
    migrate.upgrade(settings.database)
    with TestClient(create_app(settings), base_url="http://service") as http:
        database = Database(settings.database)
        played_fleet.join(database)
        yield Api(http, database)
        database.close()


def played(api: Api) -> dict[str, Any]:
    """Return a finished job of one product; the machine's peaks are known."""
    played_fleet.join(api.database)
    made = api.submit(product(32), name="a product", budget={"max_trials": 20})
    played_fleet.play(api.database, made["id"])
    found: dict[str, Any] = api.get(f"/jobs/{made['id']}")
    return found


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The application that the modules share. One that needs a database to itself has an ``api`` of its own."""
    with running(settings_in(tmp_path_factory.mktemp("api"))) as api:
        yield api


@pytest.fixture(scope="session")
def job(api: Api) -> dict[str, Any]:
    """The shared application's finished job. No other test plays its workload."""
    return played(api)


@pytest.fixture(autouse=True)
def a_live_worker_and_an_empty_queue(api: Api) -> Iterator[None]:
    """The worker is alive, however long the tests before took, and no job that waits is left to the next test."""
    played_fleet.join(api.database)
    yield
    for waiting in api.get("/jobs", state="queued", page_size=500)["items"]:
        api.database.jobs.request_cancel(waiting["id"])


@pytest.fixture
def no_tvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Applications that start now read no modules, and start sooner."""
    monkeypatch.setattr(sandbox, "PRELOAD", ["tests.support.faults"])

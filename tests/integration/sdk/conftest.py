"""The SDK connected to the shared service, and the jobs that its tests read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopwright import Client, Job
from tests.support.service_client import ServiceClient


@pytest.fixture(scope="session")
def client(service: ServiceClient) -> Iterator[Client]:
    with Client(service.url, service.token) as connected:
        yield connected


@pytest.fixture(scope="session")
def product(client: Client, finished_job: dict[str, Any]) -> Job:
    """A finished job of MM_RELU, one PrimFunc."""
    return client.job(finished_job["id"])


@pytest.fixture(scope="session")
def perceptron(client: Client, finished_model: dict[str, Any]) -> Job:
    """A finished job of PERCEPTRON, a Relax module of two tasks."""
    return client.job(finished_model["id"])


@pytest.fixture
def on_the_same_machine(service: ServiceClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment of the user who runs the service: nothing set, no login saved."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(service.folder / "state"))
    for name in ("XDG_CONFIG_HOME", "LOOPWRIGHT_URL", "LOOPWRIGHT_TOKEN"):
        monkeypatch.delenv(name, raising=False)

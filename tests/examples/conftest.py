"""What a reader of the documentation has: a service that the client finds, and a process of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import loopwright.torch
from tests.support.service_client import ServiceClient


@pytest.fixture(scope="session", params=["played", pytest.param("real", marks=pytest.mark.whole)])
def service(request: pytest.FixtureRequest, service: ServiceClient) -> ServiceClient:
    """One whose searches are played, and a real one in the whole: examples and guides are for real ones."""
    real: ServiceClient = request.getfixturevalue("real_service") if request.param == "real" else service
    return real


@pytest.fixture
def _as_a_reader(service: ServiceClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment that leads to the service, a folder for logins, and no graph that another test compiled."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LOOPWRIGHT_URL", service.url)
    monkeypatch.setenv("LOOPWRIGHT_TOKEN", service.token)

    def afresh() -> None:
        torch._dynamo.reset()
        loopwright.torch._graphs.clear()
        loopwright.torch._own_client.cache_clear()

    afresh()
    yield
    afresh()

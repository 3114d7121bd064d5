"""What the client's tests share: a service that answers as told, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import loopwright
from loopwright import transport
from tests.unit.client.fake_service import FakeService


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No login, service or environment of whoever runs the tests; short waits between attempts."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "LOOPWRIGHT_URL", "LOOPWRIGHT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(transport, "FIRST_DELAY", 0.005)


@pytest.fixture
def service() -> Iterator[FakeService]:
    fake = FakeService()
    yield fake
    fake.close()


@pytest.fixture
def client(service: FakeService) -> Iterator[loopwright.Client]:
    with loopwright.Client(service.url, "secret") as connected:
        yield connected

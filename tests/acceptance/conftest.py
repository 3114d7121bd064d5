"""One real service for all tests that leave it standing; others start their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.harness import Service


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """On SQLite, with a Ray of its own."""
    service = Service(tmp_path_factory.mktemp("service"))
    try:
        service.start()
        yield service
    finally:
        service.destroy()


@pytest.fixture
def own_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Not started yet, for a test that ends it."""
    service = Service(tmp_path_factory.mktemp("own"))
    try:
        yield service
    finally:
        service.destroy()

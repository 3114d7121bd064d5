"""One real service for all tests that leave it standing; others start their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.perceptron import PERCEPTRON
from tests.support.programs import product
from tests.support.service import Service


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """On SQLite, with a Ray of its own."""
    service = Service(tmp_path_factory.mktemp("service"))
    try:
        service.start()
        yield service
    finally:
        service.destroy()


@pytest.fixture(scope="session")
def finished_job(service: Service) -> dict[str, Any]:
    """A job that has succeeded: `product(36)`, 12 trials."""
    return service.tuned(product(36), trials=12)


@pytest.fixture(scope="session")
def finished_model(service: Service) -> dict[str, Any]:
    """A job of two functions that has succeeded: `PERCEPTRON`, 16 trials."""
    return service.tuned(PERCEPTRON, trials=16, name="perceptron")


@pytest.fixture(scope="module")
def mortal_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """For tests that end it; each starts it where it finds it down."""
    service = Service(tmp_path_factory.mktemp("mortal"))
    try:
        yield service
    finally:
        service.destroy()

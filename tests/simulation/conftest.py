from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from db import Database, migrate
from tests.simulation.files import Files


@pytest.fixture(scope="package")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    template = tmp_path_factory.mktemp("simulation") / "template.db"
    migrate.upgrade(f"sqlite:///{template}")
    file = template.with_name("run.db")
    database = Database(f"sqlite:///{file}")
    yield Files(template, file, database)
    database.close()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Write no lines about faults: there are thousands."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)

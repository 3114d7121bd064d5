"""The API without a controller or a Ray, on a database that its test fills: nothing is tuned or measured."""

from __future__ import annotations

from pathlib import Path

import httpx

from db import migrate
from tests.support.service import START_SECONDS, Service
from tests.support.waiting import wait_for


class ApiAlone(Service):
    """``python -m service api`` on a data directory, which outlives it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.data_dir.mkdir()
        self.database = f"sqlite:///{self.data_dir / 'loopwright.db'}"

    def start(self) -> None:
        """Return when the API answers."""
        migrate.upgrade(self.database)
        self.launch("api")
        wait_for("the API", self._answers, START_SECONDS)
        self.connect()

    def _answers(self) -> bool:
        assert self.running(), self.logs()
        try:
            return httpx.get(f"{self.url}/healthz", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

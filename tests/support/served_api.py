"""The API on a real server in a thread of this process, so that a test can change what is in it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from db import Database, migrate
from service import server as api
from service.api.patience import DEFAULT, RequestPatience
from service.context import Context
from service.settings import Settings
from tests.support.service import free_port
from tests.support.waiting import wait_for

TOKEN = "owner's token"


@dataclass
class ServedApi:
    """``http`` bears the owner's token."""

    server: uvicorn.Server
    port: int
    http: httpx.Client
    database: Database

    @property
    def context(self) -> Context:
        """What the endpoints work with."""
        context: Context = self.server.config.app.state.context
        return context

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {TOKEN}"}


@contextlib.contextmanager
def served(folder: Path, patience: RequestPatience = DEFAULT, **settings: Any) -> Iterator[ServedApi]:
    """Serve in a thread until the context ends, with ``settings`` besides the necessary ones."""
    chosen = Settings(data_dir=folder, token=TOKEN, port=free_port(), guests=True, **settings)
    migrate.upgrade(chosen.database)
    server = api.server(chosen, patience)
    thread = threading.Thread(target=server.run)
    thread.start()
    database = Database(chosen.database)
    try:
        wait_for("the server", lambda: server.started or not thread.is_alive())
        assert server.started
        url, headers = f"http://127.0.0.1:{chosen.port}", {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=url, headers=headers, timeout=90, trust_env=False) as http:
            yield ServedApi(server, chosen.port, http, database)
    finally:
        server.should_exit = True
        thread.join()
        database.close()

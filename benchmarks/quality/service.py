"""The service of the benchmark: started once, used as a user would, and suspended while times are taken."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from benchmarks.quality.settings import Settings
from benchmarks.services import embedded
from loopwright import Client
from loopwright.codegen.host import lock as host_lock
from service.settings import Settings as ServiceSettings
from service.settings import ensure_token

_READY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Service:
    """A running service: how to reach it, and the processes with which it started."""

    url: str
    token: str
    roots: tuple[psutil.Process, ...]

    @property
    def environment(self) -> dict[str, str]:
        """What ``loopwright.Client()`` of another process reads."""
        return {"LOOPWRIGHT_URL": self.url, "LOOPWRIGHT_TOKEN": self.token}

    def client(self) -> Client:
        return Client(self.url, self.token)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Suspend all processes of the service for the time of the block, and return when it is ready again.

        An idle service needs a tenth of a core for its heartbeats, in bursts that would hit some engine's turn.
        """
        # Under the lock of the host's cores: a build that holds it and is suspended would keep every timing waiting.
        with host_lock.quiet():
            processes = [*self.roots, *(child for root in self.roots for child in root.children(recursive=True))]
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.suspend()
        try:
            yield
        finally:
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.resume()
            self._wait_until_ready(datetime.now(UTC))

    def _wait_until_ready(self, since: datetime) -> None:
        """Wait until a worker was seen: the service compiles for no target that no live worker offers.

        Raises:
            TimeoutError: No worker came back.
        """
        until = time.monotonic() + _READY_SECONDS
        with self.client() as client:
            while not any(worker.last_seen_at >= since for worker in client.workers()):
                if time.monotonic() > until:
                    raise TimeoutError("the service's workers did not come back after a pause")
                time.sleep(0.1)


def service_of(url: str, data_dir: Path) -> Service:
    """Return the embedded service of this process."""
    roots = tuple(psutil.Process().children())
    return Service(url, ensure_token(ServiceSettings(data_dir=data_dir)), roots)


@contextlib.contextmanager
def running(settings: Settings) -> Iterator[Service]:
    """Run the embedded service on the benchmark's database."""
    with embedded(settings.port, settings.data_dir) as client:
        yield service_of(client.url, settings.data_dir)

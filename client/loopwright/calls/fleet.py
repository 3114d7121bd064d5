"""Calls about the machines that build and measure."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from loopwright import schemas
from loopwright.calls.connection import API, PAGE_SIZE, Connection
from loopwright.session.transport import parse


class FleetCalls(Connection):
    """Workers, and the targets that they offer."""

    def workers(self) -> Iterator[schemas.Worker]:
        """Yield the machines that build and measure."""
        return self._transport.pages(schemas.Worker, f"{API}/workers", page_size=PAGE_SIZE)

    def drain_worker(self, worker_id: str) -> schemas.Worker:
        """Give a worker no new work. It finishes its current work.

        Jobs continue on other workers of its device class. Without any, they wait.

        Args:
            worker_id: ``HOST/DEVICE``.

        Raises:
            Unauthorized: the token is not an admin's.
            NotFound: there is no such worker.
        """
        return self._change_worker(worker_id, "drain")

    def undrain_worker(self, worker_id: str) -> schemas.Worker:
        """Give a drained worker work again.

        Args:
            worker_id: ``HOST/DEVICE``.

        Raises:
            Unauthorized: the token is not an admin's.
            NotFound: there is no such worker.
        """
        return self._change_worker(worker_id, "undrain")

    def _change_worker(self, worker_id: str, change: str) -> schemas.Worker:
        path = f"{API}/workers/{quote(worker_id)}/{change}"
        return parse(schemas.Worker, self._transport.request("POST", path, repeatable=True))

    def targets(self) -> Iterator[schemas.TargetOffer]:
        """Yield the targets that live workers offer; ``auto`` selects the first."""
        return self._transport.pages(schemas.TargetOffer, f"{API}/targets", page_size=PAGE_SIZE)

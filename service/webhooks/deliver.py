"""Send the queued deliveries of webhooks, in a thread of the controller."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from db import Database
from db.access.webhooks import DueDelivery
from db.errors import Unavailable
from service.webhooks import sign

_POLL_SECONDS = 1.0
_BATCH = 50
"""Deliveries that are sent at a time. Not tuned."""
_SEND_SECONDS = 10.0
"""For one delivery, from resolving the name of its host to the status of the answer."""
_HOLD_SECONDS = 60.0
"""Longer than a batch takes, so that no other controller sends the same meanwhile."""
_LONGEST_ERROR = 300
"""Characters."""

if TYPE_CHECKING:
    import httpx

log = logging.getLogger("loopwright.webhooks")


class Deliverer:
    """Sends deliveries when they are due. Any number of controllers may have one each."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop, then wait for the deliveries that are being sent."""
        was_away = False
        while not stop.is_set():
            # What was claimed and not sent is due again after `_HOLD_SECONDS`.
            try:
                is_full = self._send_due() == _BATCH
            except Unavailable as error:
                if not was_away:
                    log.warning("deliveries of webhooks wait: %s", error)
                is_full, was_away = False, True
            except Exception:
                log.exception("deliveries of webhooks wait")
                is_full = False
            else:
                was_away = False
            if not is_full:
                stop.wait(_POLL_SECONDS)

    def _send_due(self) -> int:
        """Send one batch of what is due; return how many deliveries it had."""
        due = self._db.webhooks.claim_due(_BATCH, _HOLD_SECONDS)
        if not due:
            return 0
        for delivery, error in zip(due, asyncio.run(_send_all(due)), strict=True):
            if error is None:
                self._db.webhooks.delivered(delivery.id)
            else:
                log.warning("webhook %s: delivery %s failed: %s", delivery.webhook_id, delivery.id, error)
                self._db.webhooks.failed(delivery.id, error)
        return len(due)


async def _send_all(due: Sequence[DueDelivery]) -> list[str | None]:
    """Send deliveries at the same time; return for each why it failed, None if it arrived."""
    import httpx  # most controllers send none, and start in less time

    # `_send` has the deadline: httpx's are for single steps, of which a receiver can make many. Redirects would lead
    # to where no admin has named.
    async with httpx.AsyncClient(timeout=None, follow_redirects=False, trust_env=False) as client:
        return await asyncio.gather(*(_send(client, delivery) for delivery in due))


async def _send(client: httpx.AsyncClient, delivery: DueDelivery) -> str | None:
    """Send one delivery; return why it failed, None if it arrived."""
    body = delivery.body.encode()
    try:
        signed = sign.headers(delivery.secret, delivery.id, int(time.time()), body)
        headers = {"Content-Type": "application/json", "User-Agent": "Loopwright", **signed}
        async with (
            asyncio.timeout(_SEND_SECONDS),
            client.stream("POST", delivery.url, content=body, headers=headers) as answer,
        ):
            # The status says it all. Nothing of the body is read, however long it is.
            return None if answer.is_success else f"status {answer.status_code}"
    except TimeoutError:
        return f"no answer within {_SEND_SECONDS:g} s"
    except Exception as error:  # Whatever a receiver does concerns its own delivery only.
        return f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]

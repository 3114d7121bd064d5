"""Webhooks, and the outbox of their deliveries.

A delivery is written in the transaction of the change that it tells of: it is lost with that change only, and nothing
is sent of a change that was rolled back. Whoever sends claims deliveries for some seconds; one whose outcome is not
stored within them is sent again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from db.engine.changes import Topic
from db.engine.columns import new_id
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.engine.paging import Keyset, Page
from db.errors import NotFound
from db.models import Delivery, Webhook
from db.states import WebhookEvent

TEST = "test"
"""The type of a delivery that somebody asked for, which tells of no event."""
MAX_ATTEMPTS = 12
_FIRST_WAIT_SECONDS = 10.0
_LONGEST_WAIT_SECONDS = 6 * 3600.0
"""With `MAX_ATTEMPTS`, a receiver can be away for a day and a half."""

_NEWEST = Keyset("deliveries", Delivery.created_at, Delivery.id, descending=True)


@dataclass(frozen=True, slots=True)
class WebhookView:
    """A webhook without its secret."""

    id: str
    url: str
    events: tuple[WebhookEvent, ...]
    user_name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """``next_at`` None: it is delivered, or given up. ``last_error``: why the latest attempt that failed did."""

    id: str
    webhook_id: str
    event: str
    created_at: datetime
    attempts: int
    next_at: datetime | None
    delivered_at: datetime | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """The values that are needed to send one delivery."""

    id: str
    webhook_id: str
    url: str
    secret: str
    body: str


def notify(session: Session, event: WebhookEvent, facts: Mapping[str, Any], now: datetime) -> None:
    """Queue a delivery for each webhook that wants the event, in the caller's transaction. ``facts`` are JSON."""
    # The lock keeps a webhook from being deleted before this transaction has stored the delivery that refers to it.
    webhooks = select(Webhook.id, Webhook.events).order_by(Webhook.id).with_for_update(read=True, key_share=True)
    for webhook_id, events in session.execute(webhooks):
        if event in events:
            _queue(session, webhook_id, event, facts, now)


def told_since(session: Session, event: WebhookEvent, since: datetime) -> list[dict[str, Any]]:
    """Return the facts of all deliveries of an event that were queued after `since`, one for each webhook."""
    wanted = select(Delivery.body).where(Delivery.event == event, Delivery.created_at > since)
    return [json.loads(body)["data"] for body in session.scalars(wanted)]


class Webhooks:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @retry_conflicts
    def create(self, url: str, secret: str, *, events: Sequence[WebhookEvent], user_name: str) -> WebhookView:
        """Store a webhook, which receives events from now on. An event that is given twice is stored once."""
        row = Webhook(
            id=new_id(),
            url=url,
            secret=secret,
            events=list(dict.fromkeys(events)),
            user_name=user_name,
            created_at=self._sessions.now(),
        )
        with self._sessions.write() as session:
            session.add(row)
        return _view(row)

    def all(self) -> list[WebhookView]:
        """Return all webhooks, the newest first."""
        wanted = select(Webhook).order_by(Webhook.created_at.desc(), Webhook.id.desc())
        with self._sessions.read() as session:
            return [_view(row) for row in session.scalars(wanted)]

    @retry_conflicts
    def delete(self, webhook_id: str) -> None:
        """Delete a webhook with its deliveries, those that were not sent yet among them. Raise `NotFound`."""
        with self._sessions.write() as session:
            gone = delete(Webhook).where(Webhook.id == webhook_id)
            if session.connection().execute(gone).rowcount != 1:
                raise NotFound("webhook", webhook_id)

    @retry_conflicts
    def test(self, webhook_id: str) -> DeliveryView:
        """Queue a delivery of type ``test``, whatever events the webhook wants. Raise `NotFound`."""
        wanted = select(Webhook.id).where(Webhook.id == webhook_id).with_for_update(read=True, key_share=True)
        with self._sessions.write() as session:
            if session.scalar(wanted) is None:
                raise NotFound("webhook", webhook_id)
            return _delivery_view(_queue(session, webhook_id, TEST, {}, self._sessions.now()))

    def deliveries(self, webhook_id: str, page_size: int = 50, page_token: str | None = None) -> Page[DeliveryView]:
        """Return deliveries of a webhook, the newest first. Raise `NotFound` and `InvalidPage`."""
        wanted = select(Delivery).where(Delivery.webhook_id == webhook_id)
        with self._sessions.read() as session:
            if session.get(Webhook, webhook_id) is None:
                raise NotFound("webhook", webhook_id)
            return _NEWEST.page(session, wanted, _delivery_view, page_size, page_token)

    @retry_conflicts
    def claim_due(self, limit: int, hold_seconds: float) -> list[DueDelivery]:
        """Return deliveries that are to be sent now, the longest due first, each with one more attempt.

        Nobody else claims them within `hold_seconds`; they are due again after that unless `delivered` or `failed`
        has stored what came of them.
        """
        now = self._sessions.now()
        # On SQLite, a transaction that may write keeps all others from writing. Mostly nothing is due.
        with self._sessions.read() as session:
            if session.scalar(select(Delivery.id).where(Delivery.next_at <= now).limit(1)) is None:
                return []
        with self._sessions.write(Topic.NONE) as session:
            due = (
                select(Delivery, Webhook)
                .join(Webhook, Delivery.webhook_id == Webhook.id)
                .where(Delivery.next_at <= now)
                .order_by(Delivery.next_at, Delivery.id)
                .limit(limit)
                .with_for_update(skip_locked=True, of=Delivery)
            )
            claimed = []
            for delivery, webhook in session.execute(due):
                delivery.attempts += 1
                delivery.next_at = now + timedelta(seconds=hold_seconds)
                claimed.append(DueDelivery(delivery.id, webhook.id, webhook.url, webhook.secret, delivery.body))
            return claimed

    @retry_conflicts
    def delivered(self, delivery_id: str) -> None:
        """Store that a delivery has arrived. Nothing happens if it was deleted meanwhile."""
        done = update(Delivery).where(Delivery.id == delivery_id)
        with self._sessions.write(Topic.NONE) as session:
            session.execute(done.values(delivered_at=self._sessions.now(), next_at=None))

    @retry_conflicts
    def failed(self, delivery_id: str, error: str) -> None:
        """Store why an attempt failed. The next one is after 10 s, 40 s, 160 s and so on, at most 6 h; there are 12.

        Nothing happens if the delivery was deleted meanwhile, or if another attempt has arrived.
        """
        missing = select(Delivery).where(Delivery.id == delivery_id, Delivery.delivered_at.is_(None))
        with self._sessions.write(Topic.NONE) as session:
            row = session.scalar(missing.with_for_update())
            if row is None:
                return
            row.last_error = error
            row.next_at = None if row.attempts >= MAX_ATTEMPTS else self._sessions.now() + _wait(row.attempts)

    @retry_conflicts
    def forget(self, days: float) -> int:
        """Delete deliveries that are older, whatever became of them; return how many."""
        old = delete(Delivery).where(Delivery.created_at < self._sessions.now() - timedelta(days=days))
        with self._sessions.write() as session:
            return session.connection().execute(old).rowcount


def _queue(session: Session, webhook_id: str, event: str, facts: Mapping[str, Any], now: datetime) -> Delivery:
    message = {"type": event, "timestamp": now.isoformat(), "data": dict(facts)}
    row = Delivery(
        id=new_id(),
        webhook_id=webhook_id,
        event=event,
        body=json.dumps(message, ensure_ascii=False, separators=(",", ":")),
        created_at=now,
        attempts=0,
        next_at=now,
    )
    session.add(row)
    return row


def _wait(attempts: int) -> timedelta:
    """Return how long after so many attempts the next one is made."""
    return timedelta(seconds=min(_FIRST_WAIT_SECONDS * 4 ** (attempts - 1), _LONGEST_WAIT_SECONDS))


def _view(row: Webhook) -> WebhookView:
    events = tuple(WebhookEvent(event) for event in row.events)
    return WebhookView(row.id, row.url, events, row.user_name, row.created_at)


def _delivery_view(row: Delivery) -> DeliveryView:
    return DeliveryView(
        id=row.id,
        webhook_id=row.webhook_id,
        event=row.event,
        created_at=row.created_at,
        attempts=row.attempts,
        next_at=row.next_at,
        delivered_at=row.delivered_at,
        last_error=row.last_error,
    )

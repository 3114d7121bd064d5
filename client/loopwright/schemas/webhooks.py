"""Webhooks: addresses that the service tells of events, and what it has sent to them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from loopwright.schemas.base import Wire

WebhookEvent = Literal["job.finished", "best.regressed", "worker.quarantined", "worker.lost"]
DeliveryType = Literal["job.finished", "best.regressed", "worker.quarantined", "worker.lost", "test"]
"""A `WebhookEvent`, or what ``POST /webhooks/{id}/test`` has sent."""


def _address(url: str) -> str:
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("a URL may contain only printable ASCII characters; percent-encode the others")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{url!r} is not a URL: {error}") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"the URL {url!r} must begin with http:// or https://")
    if not host:
        raise ValueError(f"the URL {url!r} names no host")
    if "@" in parts.netloc:
        raise ValueError("the URL must not contain a user or a password; the signature identifies the sender")
    if "#" in url:
        raise ValueError("the URL must not contain a fragment (#), because fragments are not sent")
    return url


class NewWebhook(Wire):
    """Body of ``POST /webhooks``."""

    url: Annotated[str, Field(max_length=2000), AfterValidator(_address)]
    """http or https, without user, password and fragment."""
    events: list[WebhookEvent] = Field(default=list(get_args(WebhookEvent)), min_length=1)
    """What it is told of; all events if nothing is given."""


class Webhook(Wire):
    """An address that is told of events, without its secret; ``user`` is who made it."""

    id: str
    """Id of the webhook."""
    url: str
    """Where messages are sent."""
    events: list[WebhookEvent]
    """What it is told of."""
    user: str
    """Who made it."""
    created_at: datetime
    """When it was created."""


class WebhookMade(Wire):
    """A new webhook; ``secret`` is shown this once."""

    webhook: Webhook
    """The webhook, as it is listed."""
    secret: str
    """The key of its signatures, as Standard Webhooks has it: ``whsec_`` and base64."""


class Delivery(Wire):
    """A message for a webhook: delivered at ``delivered_at``, else to be sent at ``next_at``, else given up."""

    id: str
    """The ``webhook-id`` that it is sent with."""
    type: DeliveryType
    """The event that it tells of, or ``test``."""
    created_at: datetime
    """When the event happened."""
    attempts: int
    """How often it was sent."""
    next_at: datetime | None
    """When it is sent next; None if it is not."""
    delivered_at: datetime | None
    """When the receiver accepted it; None if it has not."""
    last_error: str | None
    """Why the latest attempt that failed did."""

"""Webhooks: receivers of events, and the deliveries to them."""

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
    """Events that are sent; all events if none is given."""


class Webhook(Wire):
    """A receiver of events, without its secret."""

    id: str
    """Id of the webhook."""
    url: str
    """Where messages are sent."""
    events: list[WebhookEvent]
    """Events that are sent."""
    user: str
    """User who created the webhook."""
    created_at: datetime
    """When it was created."""


class WebhookMade(Wire):
    """A new webhook. Only this answer contains the ``secret``."""

    webhook: Webhook
    """The webhook, as it is listed."""
    secret: str
    """The key of its signatures, in the form of Standard Webhooks: ``whsec_`` and base64."""


class Delivery(Wire):
    """A message for a webhook: delivered at ``delivered_at``, else to be sent at ``next_at``, else given up."""

    id: str
    """The ``webhook-id`` of the message."""
    type: DeliveryType
    """The event, or ``test``."""
    created_at: datetime
    """When the event happened."""
    attempts: int
    """Number of attempts."""
    next_at: datetime | None
    """Time of the next attempt; None if there is none."""
    delivered_at: datetime | None
    """When the receiver accepted it; None if it has not."""
    last_error: str | None
    """Error of the latest failed attempt."""

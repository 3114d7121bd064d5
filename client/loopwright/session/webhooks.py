"""Webhooks: a part of `loopwright.Client`, for admins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from loopwright import schemas
from loopwright.session.transport import Transport, body, parse

_API = "/api/v1/webhooks"
_PAGE_SIZE = 200


class Webhooks:
    """Addresses that the service tells of events. Calls raise Unauthorized unless an admin asks."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[schemas.Webhook]:
        """Return all webhooks, the newest first."""
        return self._transport.pages(schemas.Webhook, _API)

    def create(self, url: str, *, events: Sequence[schemas.WebhookEvent] | None = None) -> schemas.WebhookMade:
        """Have events sent to an address. The secret of the signatures is in this answer only.

        Args:
            url: http or https, without user, password and fragment.
            events: which events; None: all.

        Raises:
            ValueError: the URL or an event is not accepted.
        """
        fields = {} if events is None else {"events": events}
        made = self._transport.request("POST", _API, json=body(schemas.NewWebhook, url=url, **fields))
        return parse(schemas.WebhookMade, made)

    def delete(self, webhook_id: str) -> None:
        """Delete a webhook with its deliveries.

        Args:
            webhook_id: ``Webhook.id``.

        Raises:
            NotFound: there is no such webhook.
        """
        self._transport.request("DELETE", _path(webhook_id))

    def test(self, webhook_id: str) -> schemas.Delivery:
        """Queue a delivery of type ``test``.

        Args:
            webhook_id: ``Webhook.id``.

        Raises:
            NotFound: there is no such webhook.
        """
        return parse(schemas.Delivery, self._transport.request("POST", f"{_path(webhook_id)}/test"))

    def deliveries(self, webhook_id: str) -> Iterator[schemas.Delivery]:
        """Yield what was sent to a webhook within 30 days, or is to be, the newest first.

        Args:
            webhook_id: ``Webhook.id``.

        Raises:
            NotFound: there is no such webhook.
        """
        return self._transport.pages(schemas.Delivery, f"{_path(webhook_id)}/deliveries", page_size=_PAGE_SIZE)


def _path(webhook_id: str) -> str:
    return f"{_API}/{quote(webhook_id, safe='')}"

"""``/webhooks``: receivers of events, and the deliveries to them. For admins."""

from __future__ import annotations

from typing import cast

from fastapi import APIRouter

from db.access.webhooks import DeliveryView, WebhookView
from db.states import WebhookEvent
from loopwright import schemas
from service.bodies.route import ParsedRoute
from service.context import Ctx, Paging
from service.identity.rights import needs
from service.identity.visitor import Asking
from service.problems import BODY
from service.webhooks.sign import new_secret

router = APIRouter(tags=["webhooks"], route_class=ParsedRoute)


@router.get("/webhooks")
@needs("administer")
def list_webhooks(ctx: Ctx) -> schemas.Page[schemas.Webhook]:
    """Return all webhooks, the newest first, without their secrets."""
    return schemas.Page(items=[_webhook(view) for view in ctx.database.webhooks.all()], next_page_token=None)


@router.post("/webhooks", status_code=201, responses=BODY)
@needs("administer")
def make_webhook(ctx: Ctx, visitor: Asking, body: schemas.NewWebhook) -> schemas.WebhookMade:
    """Send events to an address from now on. Only this answer contains the secret of the signatures."""
    secret = new_secret()
    events = [WebhookEvent(event) for event in body.events]
    made = ctx.database.webhooks.create(body.url, secret, events=events, user_name=visitor.user)
    return schemas.WebhookMade(webhook=_webhook(made), secret=secret)


@router.delete("/webhooks/{webhook_id}", status_code=204)
@needs("administer")
def delete_webhook(ctx: Ctx, webhook_id: str) -> None:
    """Delete a webhook and its deliveries. Deliveries that were not sent yet are dropped."""
    ctx.database.webhooks.delete(webhook_id)


@router.get("/webhooks/{webhook_id}/deliveries")
@needs("administer")
def list_deliveries(ctx: Ctx, paging: Paging, webhook_id: str) -> schemas.Page[schemas.Delivery]:
    """Return the sent and pending deliveries, the newest first. Deliveries are deleted after 30 days."""
    page = ctx.database.webhooks.deliveries(webhook_id, paging.size, paging.token)
    return schemas.Page(items=[_delivery(view) for view in page.items], next_page_token=page.next_page_token)


@router.post("/webhooks/{webhook_id}/test", status_code=202)
@needs("administer")
def send_test(ctx: Ctx, webhook_id: str) -> schemas.Delivery:
    """Queue a delivery of type ``test``. The list of deliveries has its outcome."""
    return _delivery(ctx.database.webhooks.test(webhook_id))


def _webhook(view: WebhookView) -> schemas.Webhook:
    return schemas.Webhook(
        id=view.id,
        url=view.url,
        events=[event.value for event in view.events],
        user=view.user_name,
        created_at=view.created_at,
    )


def _delivery(view: DeliveryView) -> schemas.Delivery:
    return schemas.Delivery(
        id=view.id,
        type=cast(schemas.DeliveryType, view.event),
        created_at=view.created_at,
        attempts=view.attempts,
        next_at=view.next_at,
        delivered_at=view.delivered_at,
        last_error=view.last_error,
    )

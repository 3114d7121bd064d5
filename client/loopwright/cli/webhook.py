"""``loopwright webhook``: which addresses are told of events, and what was sent to them; for admins."""

from __future__ import annotations

import itertools
from typing import Annotated, cast, get_args

import typer

from loopwright import schemas
from loopwright.cli.options import Json, Limit, connect
from loopwright.cli.output import print_json, print_line
from loopwright.cli.views import show_deliveries, show_webhooks

app = typer.Typer(help="Send events to other systems; for admins.", no_args_is_help=True)

_EVENTS = get_args(schemas.WebhookEvent)

WebhookId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the webhook, as the list shows it.", show_default=False)
]


@app.command("list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """List webhooks, the newest first."""
    with connect(context) as client:
        webhooks = list(client.webhooks.list())
    if as_json:
        print_json(webhooks)
    else:
        show_webhooks(webhooks)


@app.command()
def add(
    context: typer.Context,
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Address of the receiver, http or https.", show_default=False)
    ],
    event: Annotated[
        list[str] | None, typer.Option(help=f"{' or '.join(_EVENTS)}; repeat for others. By default, all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Add a webhook and print the secret of its signatures, this once."""
    # The SDK refuses others.
    events = cast(list[schemas.WebhookEvent], event) if event else None
    with connect(context) as client:
        made = client.webhooks.create(url, events=events)
    if as_json:
        print_json(made)
    else:
        print_line(made.secret)


@app.command()
def remove(context: typer.Context, webhook_id: WebhookId, as_json: Json = False) -> None:
    """Remove a webhook and its deliveries; deliveries that were not sent yet are dropped."""
    with connect(context) as client:
        client.webhooks.delete(webhook_id)
    if as_json:
        print_json({"removed": webhook_id})
    else:
        print_line(f"removed {webhook_id}")


@app.command("test")
def send_test(context: typer.Context, webhook_id: WebhookId, as_json: Json = False) -> None:
    """Send a delivery of type "test"; the list of deliveries shows its result."""
    with connect(context) as client:
        delivery = client.webhooks.test(webhook_id)
    if as_json:
        print_json(delivery)
    else:
        print_line(f"queued {delivery.id}; see: loopwright webhook deliveries {webhook_id}")


@app.command()
def deliveries(context: typer.Context, webhook_id: WebhookId, limit: Limit = 50, as_json: Json = False) -> None:
    """List the sent and pending deliveries of a webhook, the newest first."""
    with connect(context) as client:
        found = list(itertools.islice(client.webhooks.deliveries(webhook_id), limit))
    if as_json:
        print_json(found)
    else:
        show_deliveries(found)

"""``loopwright worker``: the fleet."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated

import typer

from loopwright import schemas
from loopwright.cli.options import Json, connect
from loopwright.cli.output import print_json, print_line
from loopwright.cli.views import show_workers
from loopwright.client import Client
from loopwright.local import parts

app = typer.Typer(help="List, join and drain the workers, which build and measure.", no_args_is_help=True)

WorkerId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the worker, HOST/DEVICE, as loopwright worker list shows it.")
]


@app.command("list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """List workers."""
    with connect(context) as client:
        workers = list(client.workers())
    if as_json:
        print_json(workers)
    else:
        show_workers(workers)


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    add_help_option=False,
)
def start(context: typer.Context) -> None:
    """Join this machine to a fleet until Ctrl-C or SIGTERM. Needs --address HOST:PORT; --help lists all options."""
    command = parts.command("worker")
    if command is None:
        print_line(
            "This installation of Loopwright is the client alone. Install the workers on the machine that is to join, "
            "with pip install 'loopwright[local]', or run scripts/worker in a checkout or the container image: see "
            "docs/operations.md, Join a machine.",
            error=True,
        )
        raise typer.Exit(2)
    # In place of this process, so that whoever started it stops the worker by a signal.
    os.execv(command[0], [*command, *context.args])


@app.command()
def drain(context: typer.Context, worker_id: WorkerId, as_json: Json = False) -> None:
    """Give a worker no new work. Its current work finishes; jobs continue on other workers, or wait."""
    _change(context, Client.drain_worker, worker_id, as_json)


@app.command()
def undrain(context: typer.Context, worker_id: WorkerId, as_json: Json = False) -> None:
    """Give a drained worker work again."""
    _change(context, Client.undrain_worker, worker_id, as_json)


def _change(
    context: typer.Context, change: Callable[[Client, str], schemas.Worker], worker_id: str, as_json: bool
) -> None:
    with connect(context) as client:
        worker = change(client, worker_id)
    if as_json:
        print_json(worker)
    else:
        show_workers([worker])

"""``loopwright worker``: the fleet."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from loopwright import schemas
from loopwright.cli.options import Json, connect
from loopwright.cli.output import print_json, print_line
from loopwright.cli.views import show_workers
from loopwright.client import Client

app = typer.Typer(help="List, join and drain the workers, which build and measure.", no_args_is_help=True)

_HOST = "workers.host"
"""The program of a worker host: a part of the service, which the wheel of the client does not have."""

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
    if not _is_installed(_HOST):
        print_line(
            "This installation of Loopwright is the client alone. Run scripts/worker in a checkout of Loopwright on "
            "the machine that is to join, or its container image: see docs/operations.md, Join a machine.",
            error=True,
        )
        raise typer.Exit(2)
    # In place of this process, so that whoever started it stops the worker by a signal.
    os.execv(sys.executable, [sys.executable, "-m", _HOST, *context.args])


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


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

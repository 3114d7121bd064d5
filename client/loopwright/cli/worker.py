"""``loopwright worker``: the fleet."""

from __future__ import annotations

import typer

from loopwright.cli.options import Json, connect
from loopwright.cli.output import print_json
from loopwright.cli.views import show_workers

app = typer.Typer(help="The machines that build and measure.", no_args_is_help=True)


@app.command("list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """List workers."""
    with connect(context) as client:
        workers = list(client.workers())
    if as_json:
        print_json(workers)
    else:
        show_workers(workers)

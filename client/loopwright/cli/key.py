"""``loopwright key``: the public keys with which a service signs certificates."""

from __future__ import annotations

import typer

from loopwright.cli.options import Json, connect
from loopwright.cli.output import print_json
from loopwright.cli.views import show_keys

app = typer.Typer(help="List the keys that sign certificates.", no_args_is_help=True)


@app.command("list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """List the public keys of the service, the newest first; a file of --json is what `verify` takes."""
    with connect(context) as client:
        keys = list(client.signing_keys())
    if as_json:
        print_json(keys)
    else:
        show_keys(keys)

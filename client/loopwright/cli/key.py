"""``loopwright key``: the public keys with which a service signs certificates, and keys to sign packs with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopwright import schemas
from loopwright.cli.options import Json, connect
from loopwright.cli.output import print_json
from loopwright.cli.views import show_keys
from loopwright.packs import signing

app = typer.Typer(help="List the keys that sign certificates, and make keys that sign packs.", no_args_is_help=True)


@app.command("list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """List the public keys of the service, the newest first; a file of --json is what `verify` takes."""
    with connect(context) as client:
        keys = list(client.signing_keys())
    if as_json:
        print_json(keys)
    else:
        show_keys(keys)


KeyFile = Annotated[Path, typer.Argument(metavar="FILE", help="File of the private key.", show_default=False)]


@app.command()
def new(path: KeyFile, as_json: Json = False) -> None:
    """Make a key to sign packs with, in a new file that only you may read, and print its public part."""
    _show(signing.new_key(path).public, as_json)


@app.command()
def show(path: KeyFile, as_json: Json = False) -> None:
    """Print the public part of a key that signs packs; a file of --json is what 'pack install --keys' takes."""
    _show(signing.read_key(path).public, as_json)


@app.command()
def revoke(
    path: Annotated[Path, typer.Argument(metavar="KEYS", help="File of public keys.", show_default=False)],
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the key.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Mark a key in a file of public keys as revoked: packs that it signed, at whatever time, are refused from then."""
    _show(signing.revoke(path, key_id), as_json)


def _show(key: schemas.SigningKey, as_json: bool) -> None:
    if as_json:
        print_json([key])
    else:
        show_keys([key])

"""``loopwright token``: tokens of one's own, and for admins those of others."""

from __future__ import annotations

import itertools
from typing import Annotated

import typer

from loopwright.cli.options import Json, Limit, ScopeOption, connect
from loopwright.cli.output import print_json, print_line
from loopwright.cli.views import show_tokens

app = typer.Typer(help="Create, list and revoke tokens.", no_args_is_help=True)


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Purpose of the token, as lists show it.", show_default=False)],
    scope: ScopeOption = "submit",
    days: Annotated[
        int | None,
        typer.Option(min=1, max=3650, help="Days for which the token is valid; by default, until it is revoked."),
    ] = None,
    user: Annotated[str | None, typer.Option(help="User of the token (for admins); by default, yourself.")] = None,
    as_json: Json = False,
) -> None:
    """Create a token and print it, this once."""
    with connect(context) as client:
        made = client.access.create_token(name, scope=scope, days=days, user=user)
    if as_json:
        print_json(made)
    else:
        print_line(made.secret)


@app.command("list")
def list_(
    context: typer.Context,
    all_: Annotated[bool, typer.Option("--all", help="List the tokens of all users; for admins.")] = False,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List tokens, signed-in browsers and guest links, the newest first."""
    with connect(context) as client:
        tokens = list(itertools.islice(client.access.tokens(all_), limit))
    if as_json:
        print_json(tokens)
    else:
        show_tokens(tokens)


@app.command()
def revoke(
    context: typer.Context,
    token_id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the token, as the list shows it.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Revoke a token, a signed-in browser or a guest link."""
    with connect(context) as client:
        revoked = client.access.revoke_token(token_id)
    if as_json:
        print_json(revoked)
    else:
        print_line(f"revoked {revoked.id} ({revoked.name}) of {revoked.user}")

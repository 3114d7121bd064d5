"""``loopwright user``: who may sign in, and how much each may use."""

from __future__ import annotations

from typing import Annotated

import typer

from loopwright import schemas
from loopwright.cli.options import Json, ScopeOption, connect
from loopwright.cli.output import print_json, print_line
from loopwright.cli.views import show_use, show_users

app = typer.Typer(help="Manage users and their limits, and show their use.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="USER", help="Name of the user.", show_default=False)]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=VALUE",
        help=f"One of {', '.join(schemas.Quota.model_fields)}, or none for the value; repeat for others.",
    ),
]


def _quota(words: list[str] | None, before: schemas.Quota) -> schemas.Quota:
    """Return the limits ``before`` with the changes that ``words`` give."""
    values = before.model_dump()
    for word in words or ():
        name, _, value = word.partition("=")
        if name not in values:
            raise typer.BadParameter(f"{word!r} is not of the form daily_trials=50000", param_hint="--limit")
        values[name] = None if value == "none" else value
    try:
        return schemas.Quota.model_validate(values)
    except ValueError as error:
        raise typer.BadParameter(
            f"{' '.join(words or ())}: a limit is a number or none", param_hint="--limit"
        ) from error


@app.command()
def create(
    context: typer.Context,
    name: Name,
    role: ScopeOption = "submit",
    limit: Limits = None,
    as_json: Json = False,
) -> None:
    """Create a user and a first token, and print the token, this once."""
    with connect(context) as client:
        user = client.access.create_user(name, role=role)
        if limit:
            user = client.access.change_user(name, quota=_quota(limit, user.quota))
        made = client.access.create_token("first token", scope=role, user=name)
    if as_json:
        print_json({"user": user.model_dump(mode="json"), "secret": made.secret})
    else:
        print_line(made.secret)


@app.command("list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """List users and their limits."""
    with connect(context) as client:
        users = list(client.access.users())
    if as_json:
        print_json(users)
    else:
        show_users(users)


@app.command()
def change(
    context: typer.Context,
    name: Name,
    role: Annotated[schemas.Scope | None, typer.Option(help="Role of the user: read, submit or admin.")] = None,
    limit: Limits = None,
    disable: Annotated[
        bool | None, typer.Option("--disable/--enable", help="Disabling revokes the user's tokens.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Change a user's role or limits, or disable the user."""
    with connect(context) as client:
        before = client.access.use(name).quota
        quota = _quota(limit, before) if limit else None
        user = client.access.change_user(name, role=role, quota=quota, disabled=disable)
    if as_json:
        print_json(user)
    else:
        show_users([user])


@app.command()
def use(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="USER", help="Name of the user; by default, yourself.")] = None,
    as_json: Json = False,
) -> None:
    """Show a user's use of each limit."""
    with connect(context) as client:
        found = client.access.use(name)
    if as_json:
        print_json(found)
    else:
        show_use(found)

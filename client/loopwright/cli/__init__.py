"""The ``loopwright`` command.

Exit status: 0 done, 1 the job did not succeed (or not in the time that was given for it), 2 usage (wrong arguments, a
file that cannot be read, written or imported), 3 the service could not be reached or refused, 130 Ctrl-C.
"""

from __future__ import annotations

import itertools
import logging
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import loopwright
from loopwright.cli import (
    check,
    compare,
    doctor,
    job,
    key,
    lock,
    pack,
    package,
    record,
    schedule,
    service,
    token,
    tune,
    user,
    webhook,
    worker,
)
from loopwright.cli.options import Json, Limit, connect
from loopwright.cli.output import print_json, print_line
from loopwright.cli.views import show_audit
from loopwright.client import Client
from loopwright.codegen.errors import CodegenError
from loopwright.errors import (
    InvalidPack,
    LoopwrightError,
    NotLocked,
    TvmUnavailable,
    UnsupportedModel,
    WaitTimedOut,
)
from loopwright.session import config


class _Commands(TyperGroup):
    """The commands; for an unknown one, the error names the groups that have it: ``job submit`` for ``submit``."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is None and not ctx.resilient_parsing:
            groups = [name for name, group in self.commands.items() if cmd_name in getattr(group, "commands", ())]
            if groups:
                suggested = " or ".join(f"'{name} {cmd_name}'" for name in groups)
                ctx.fail(f"No such command {cmd_name!r}. Did you mean {suggested}?")
        return command


app = typer.Typer(
    name="loopwright",
    cls=_Commands,
    help="Submit tensor programs for tuning, and use the fastest schedules found.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("check")(check.check)
app.command("compare")(compare.compare)
app.command("doctor")(doctor.doctor)
app.command("lock")(lock.lock)
app.command("package")(package.package)
app.command("tune")(tune.tune)
app.command("verify")(package.verify)
app.add_typer(job.app, name="job")
app.add_typer(schedule.app, name="schedule")
app.add_typer(service.app, name="service")
app.add_typer(record.app, name="record")
app.add_typer(pack.app, name="pack")
app.add_typer(key.app, name="key")
app.add_typer(worker.app, name="worker")
app.add_typer(token.app, name="token")
app.add_typer(user.app, name="user")
app.add_typer(webhook.app, name="webhook")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(loopwright.__version__)
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(help="URL of the service; by default LOOPWRIGHT_URL, the saved login, or this machine's service."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="Token for the service; by default LOOPWRIGHT_TOKEN, the saved login, or this machine's service."
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    context.obj = (url, token)


@app.command()
def login(
    context: typer.Context,
    url: Annotated[str | None, typer.Argument(help="URL of the service; the default is that of --url.")] = None,
    token: Annotated[
        str | None, typer.Option(help="Token to save; without it, the command asks for one, without echo.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a token with the service and save both for later commands (readable by you only)."""
    root_url, root_token = context.obj
    url = config.resolve(url or root_url).url
    token = token or root_token or str(typer.prompt("Token", hide_input=True, err=True))
    with Client(url, token) as client:
        me = client.access.me()
        version = client.version()
    file = config.save_login(url, token)
    if as_json:
        print_json({"url": url, "user": me.user, "service": version.model_dump(mode="json"), "saved": str(file)})
    else:
        print_line(
            f"logged in to {url} as {me.user} (Loopwright {version.loopwright}, TVM {version.tvm}); saved in {file}"
        )


@app.command()
def dashboard(context: typer.Context, as_json: Json = False) -> None:
    """Print an address of the dashboard that signs in one browser, once."""
    with connect(context) as client:
        url = client.access.login_url()
    if as_json:
        print_json({"url": url})
    else:
        print_line(url)


@app.command()
def audit(context: typer.Context, limit: Limit = 50, as_json: Json = False) -> None:
    """List the audit log: requested changes, by whom, and whether they were refused; for admins."""
    with connect(context) as client:
        entries = list(itertools.islice(client.access.audit(), limit))
    if as_json:
        print_json(entries)
    else:
        show_audit(entries)


def main() -> None:
    """Run the command and exit with its status."""
    # What the SDK would log, commands print themselves.
    logging.getLogger("loopwright").addHandler(logging.NullHandler())
    try:
        app()
    except (WaitTimedOut, NotLocked) as error:
        _end(str(error), 1)
    except (TvmUnavailable, UnsupportedModel, InvalidPack, CodegenError) as error:
        _end(str(error), 2)
    except LoopwrightError as error:
        _end(str(error), 3)
    except OSError as error:
        _end(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error), 2)
    except (TypeError, ValueError, SyntaxError) as error:
        _end(str(error), 2)


def _end(reason: str, status: int) -> None:
    print_line(f"loopwright: {reason}", error=True)
    sys.exit(status)

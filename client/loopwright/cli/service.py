"""``loopwright service``: the service of this machine, in the background."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli.options import Json
from loopwright.cli.output import print_facts, print_json, print_line
from loopwright.jobs.progress import telling
from loopwright.local import daemon
from loopwright.local.state import LocalState, running
from loopwright.session import config

app = typer.Typer(help="Run the service of this machine in the background.", no_args_is_help=True)

DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder of its database, token and logs; by default LOOPWRIGHT_DATA_DIR, or that of the user."),
]


@app.command()
def start(
    data_dir: DataDir = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port to listen on; by default that of the last start, or a free one."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Start the service unless it runs, and return when it is ready; it goes on when the terminal is closed.

    Its settings are the environment variables of this command. Only this machine can reach it, with this user's token.
    """
    folder = _folder(data_dir)
    state = start_in(folder, port, is_told=not as_json)
    if as_json:
        _print_json(folder, state)
    else:
        print_line(f"the service runs at {state.url} (data and logs: {folder}); 'loopwright dashboard' opens its pages")


@app.command()
def stop(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Stop the service in order; its jobs continue at the next start."""
    folder = _folder(data_dir)
    has_stopped = daemon.stop(folder)
    if as_json:
        print_json({"stopped": has_stopped})
    else:
        print_line("the service has stopped" if has_stopped else f"no service runs on {folder}")


@app.command()
def status(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Say whether the service runs; exit status 3 if it does not."""
    folder = _folder(data_dir)
    state = running(folder)
    if as_json:
        _print_json(folder, state)
    else:
        facts = [] if state is None else [("address", state.url), ("process", str(state.pid))]
        print_facts([("state", _word(state)), *facts, ("data", str(folder)), ("log", str(folder / daemon.LOG))])
    if state is None or not state.is_ready:
        raise typer.Exit(3)


def start_in(folder: Path, port: int | None = None, *, is_told: bool) -> LocalState:
    """Start the service on a folder unless it runs, say the steps on standard error, and return it when it is ready."""
    with telling(is_told) as say:
        try:
            return daemon.ensure(folder, say, port)
        except KeyboardInterrupt:
            if running(folder) is not None:
                print_line("the service goes on starting; 'loopwright service stop' stops it", error=True)
            raise typer.Exit(130) from None


def _folder(data_dir: Path | None) -> Path:
    return config.data_folder() if data_dir is None else data_dir.expanduser().resolve()


def _word(state: LocalState | None) -> str:
    if state is None:
        return "not running"
    return "running" if state.is_ready else "starting"


def _print_json(folder: Path, state: LocalState | None) -> None:
    known = {} if state is None else {"url": state.url, "pid": state.pid}
    print_json({"state": _word(state), **known, "data_dir": str(folder)})

"""``python -m service``: the whole service; with ``api`` or ``controller`` first, that part alone.

``migrate``, ``prune``, ``backup``, ``rotate-key`` and ``revoke-key`` maintain the database. ``doctor`` checks whether
a service can run here.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loopwright.codegen.errors import UnsupportedVersion
from loopwright.codegen.versions import check_versions
from service.command import ROLE
from service.logs import lines as logs
from service.process.parent import die_with_parent
from service.settings import Settings, TraceSettings, read_settings
from service.settings import parser as settings_parser
from service.traces import tracer
from workers.boards.config import BadBoards, read_boards


def parser() -> argparse.ArgumentParser:
    parser = settings_parser()
    # Without choices: else argparse takes the value of an unknown option for a role, and complains of that alone.
    parser.add_argument("role", nargs="?", default="serve", help=f"one of {', '.join(_ROLES)} (default serve)")
    parser.add_argument("--grant-to", metavar="ROLE", help="with migrate: let a role of PostgreSQL read and write rows")
    parser.add_argument("--days", type=float, default=90.0, help="with prune: of jobs that ended longer ago (90)")
    parser.add_argument("--dry-run", action="store_true", help="with prune: only say how much would go")
    parser.add_argument("--shrink", action="store_true", help="with prune: give the space back; SQLite's writers wait")
    parser.add_argument("--archive", metavar="FOLDER", help="with prune: where to write the trials before they go")
    parser.add_argument("--to", metavar="FILE", help="with backup: the file to write, which must not exist")
    parser.add_argument("--key", metavar="ID", help="with revoke-key: the key, as 'loopwright key list' names it")
    parser.add_argument("--die-with-parent", action="store_true", help=argparse.SUPPRESS)
    return parser


def main() -> None:
    options = vars(parser().parse_args())
    role = options.pop("role")
    if role not in _ROLES:
        parser().error(f"there is no role {role!r}; the roles are {', '.join(_ROLES)}")
    arguments = {name: options.pop(name) for name in ("grant_to", "days", "dry_run", "shrink", "archive", "to", "key")}
    if options.pop("die_with_parent"):
        die_with_parent()
    settings = read_settings(options)
    logs.set_up(settings.log_format)
    if role in ("api", "controller"):
        tracer.set_up(role, TraceSettings())
    try:
        check_versions()
        if role in ("serve", "controller"):
            read_boards(settings.rpc_devices)
    except (UnsupportedVersion, BadBoards) as error:
        sys.exit(f"loopwright: {error}")
    from service.process.exit_status import explained

    with explained(settings):
        run(role, settings, arguments)


def run(role: str, settings: Settings, arguments: dict[str, Any]) -> None:
    """Run a role until it exits. ``arguments`` contains the options that only some roles have."""
    _ROLES[role](settings, arguments)


def _migrate(settings: Settings, arguments: dict[str, Any]) -> None:
    from db import migrate
    from db.upkeep.grants import CannotGrant
    from service.outage import await_database

    await_database(settings.database)
    migrate.upgrade(settings.database)
    if arguments["grant_to"] is not None:
        try:
            migrate.grant(settings.database, arguments["grant_to"])
        except CannotGrant as error:
            sys.exit(f"loopwright: {error}")


def _api(settings: Settings, _: dict[str, Any]) -> None:
    if (shared := settings.shared_metrics) is not None:
        shared.mkdir(parents=True, exist_ok=True)
        # Before the package is imported, which then counts into files there.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(shared)
    from service import server as api
    from workers.walls.levels import NoWalls, choose

    try:
        choose(settings.walls)
    except NoWalls as error:
        sys.exit(f"loopwright: {error}")
    _require_tables(settings)
    api.main(settings)


def _controller(settings: Settings, _: dict[str, Any]) -> None:
    from service.controller import controller

    _require_tables(settings)
    controller.main(settings)


def _prune(settings: Settings, arguments: dict[str, Any]) -> None:
    from service import upkeep

    folder = arguments["archive"]
    upkeep.prune(
        settings,
        days=arguments["days"],
        dry_run=arguments["dry_run"],
        shrinks=arguments["shrink"],
        archive=None if folder is None else Path(folder),
    )


def _back_up(settings: Settings, arguments: dict[str, Any]) -> None:
    from service import upkeep

    if arguments["to"] is None:
        sys.exit("loopwright: say where to with --to FILE")
    upkeep.back_up(settings, Path(arguments["to"]))


def _rotate_key(settings: Settings, _: dict[str, Any]) -> None:
    from service import upkeep

    upkeep.rotate_key(settings)


def _revoke_key(settings: Settings, arguments: dict[str, Any]) -> None:
    from service import upkeep

    if arguments["key"] is None:
        sys.exit("loopwright: say which key with --key ID")
    upkeep.revoke_key(settings, arguments["key"])


def _doctor(settings: Settings, _: dict[str, Any]) -> None:
    from service import doctor

    doctor.main(settings)


def _require_tables(settings: Settings) -> None:
    """End unless the tables are as new as the code: in a rolling upgrade the old processes go on until they are."""
    from db import revisions

    try:
        is_behind = revisions.is_behind(settings.database)
    except Exception:
        return  # a database that is away, or cannot be used, is dealt with by whoever asks it next
    if is_behind:
        sys.exit(
            f"loopwright: the tables of the database are older than this version needs; run '{ROLE} migrate' first"
        )


def _serve(settings: Settings, _: dict[str, Any]) -> None:
    """Run until a signal comes; the one line on standard output is the URL."""
    from service.process.exit_status import leave
    from service.process.serve_error import ServeError
    from service.process.supervisor import Supervisor

    supervisor = Supervisor(settings, say=lambda text: print(f"loopwright: {text}", file=sys.stderr, flush=True))
    supervisor.handle_signals()
    try:
        with supervisor.running():
            print(f"Loopwright is ready: {supervisor.login_url()}", flush=True)
            supervisor.wait()
    except ServeError as error:
        leave(error.status, str(error))


_ROLES: dict[str, Callable[[Settings, dict[str, Any]], None]] = {
    "serve": _serve,
    "migrate": _migrate,
    "api": _api,
    "controller": _controller,
    "prune": _prune,
    "backup": _back_up,
    "rotate-key": _rotate_key,
    "revoke-key": _revoke_key,
    "doctor": _doctor,
}

if __name__ == "__main__":
    main()

"""``python -m service``: the whole service; with ``migrate``, ``api`` or ``controller`` first, that part alone."""

from __future__ import annotations

import sys

from loopwright.codegen.errors import UnsupportedVersion
from loopwright.codegen.versions import check_versions
from service.process import die_with_parent
from service.settings import Settings, parser, read_settings


def main() -> None:
    arguments = sys.argv[1:]
    role = arguments.pop(0) if arguments and not arguments[0].startswith("-") else "serve"
    if "--die-with-parent" in arguments:
        arguments.remove("--die-with-parent")
        die_with_parent()
    settings = read_settings(vars(parser().parse_args(arguments)))
    try:
        check_versions()
    except UnsupportedVersion as error:
        sys.exit(f"loopwright: {error}")
    if role == "serve":
        serve(settings)
    elif role == "migrate":
        from db import migrate

        migrate.upgrade(settings.database)
    elif role == "api":
        from service import api
        from workers.walls.levels import NoWalls, choose

        try:
            choose(settings.walls)
        except NoWalls as error:
            sys.exit(f"loopwright: {error}")
        api.main(settings)
    elif role == "controller":
        from service import controller

        controller.main(settings)
    else:
        sys.exit(f"unknown command {role!r}; use migrate, api or controller, or none for the whole service")


def serve(settings: Settings) -> None:
    """Run until a signal comes; the one line on stdout is the URL."""
    from service.supervisor import ServeError, Supervisor

    supervisor = Supervisor(settings)
    supervisor.handle_signals()
    try:
        with supervisor.running():
            print(f"Loopwright is ready: {supervisor.login_url()}", flush=True)
            supervisor.wait()
    except ServeError as error:
        sys.exit(f"loopwright: {error}")


if __name__ == "__main__":
    main()

"""The API process: ``python -m service api``."""

from __future__ import annotations

import contextlib
import functools
import gc
import resource
import socket
from typing import Any

import uvicorn

from db import Database
from service.api.connections import PatientConnection
from service.api.patience import DEFAULT, RequestPatience
from service.api.shares import Shares
from service.app import create_app
from service.outage import await_database
from service.settings import Settings, ensure_token

_OTHER_FILES = 500
"""Descriptors that are no connections: of the database, of children, of files on their way to browsers."""


def server(settings: Settings, patience: RequestPatience = DEFAULT) -> uvicorn.Server:
    """Return the API's server, which is not running yet."""
    limit = settings.max_connections
    # Those over the limit are answered 503; from the double on they are dropped.
    addresses = Shares("connections", each=limit // 2, total=2 * limit)
    connection: Any = functools.partial(PatientConnection, patience, addresses)
    return uvicorn.Server(
        uvicorn.Config(
            create_app(settings, patience),
            host=settings.host,
            port=settings.port,
            loop="uvloop",
            http=connection,
            ws="none",
            limit_concurrency=limit,
            log_config=None,  # that of this process
            log_level="warning",
            # A follower of events must not hold up the end of the service.
            timeout_graceful_shutdown=2,
        )
    )


def main(settings: Settings) -> None:
    """Serve until a signal comes."""
    _allow_files(2 * settings.max_connections + _OTHER_FILES)
    await_database(settings.database)
    database = Database(settings.database)
    # The app does it, too. Here an error ends the process with its reason, and in uvicorn with a traceback.
    database.tokens.put_owner(ensure_token(settings), settings.owner)
    database.close()
    api = server(settings)
    # What lives as long as the process. To walk it takes a collection some 90 ms, in which no request is answered.
    gc.freeze()
    with contextlib.suppress(KeyboardInterrupt):
        api.run(_shared_port(settings))


def _shared_port(settings: Settings) -> list[socket.socket] | None:
    """Return a socket on the port that several processes have, to each of which the kernel gives connections.

    None for one process alone, whose port nobody else may have.
    """
    if settings.api_processes == 1:
        return None
    port = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    # Without listening yet: the kernel would give it connections before the app has started.
    port.bind((settings.host, settings.port))
    return [port]


def _allow_files(number: int) -> None:
    """Allow this process so many open files, or as many as it may allow itself: a common limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

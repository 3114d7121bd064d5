"""Counts of what was written, by topic: whoever keeps an answer knows by them whether it still says what is stored.

A transaction adds one to the count of its topic at its end, if it has written anything. Trials are written all the time
and are not counted: their numbers and the events of their jobs tell as much.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from sqlalchemy import Insert, Integer, Select, Text, bindparam, column, func, literal_column, select, table, text
from sqlalchemy.dialects.postgresql import insert
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

_COUNT = "INSERT INTO changes (topic, shard, changes) VALUES (:topic, 0, 1) ON CONFLICT (topic, shard) "
_COUNT_IN_FILE = text(_COUNT + "DO UPDATE SET changes = changes.changes + 1")
_TABLE = table("changes", *(column(name) for name in ("topic", "shard", "changes")))
_NOTIFICATION = func.pg_notify(bindparam("channel", type_=Text), "")
_NOTIFY = select(_NOTIFICATION)
_CHANNEL, _AT_END, _LAST = "channel to notify", "what is written at the end", "statements at the end"

Last = tuple[Insert, Mapping[str, Any]]
"""A statement of a server, and its parameters."""


def rows_written(session: Session) -> int:
    """Return how many rows the connection to a file has ever written; 0 for a server."""
    if session.get_bind().dialect.name != "sqlite":
        return 0
    written: int = session.connection().connection.driver_connection.total_changes  # type: ignore[union-attr]
    return written


def notify_at_end(session: Session, channel: str) -> None:
    """Have a server notify who listens on the channel once the transaction is committed, which has written something.

    The last one that is named in a transaction.
    """
    session.info[_CHANNEL] = channel


def at_end(session: Session, write: Callable[[Session], None]) -> None:
    """Call ``write`` at the end of the transaction, just before it is counted."""
    session.info.setdefault(_AT_END, []).append(write)


def run_last(session: Session, statement: Insert, facts: Mapping[str, Any]) -> None:
    """Have a server run a statement at the end of the transaction, in one with all such, in no order.

    The statement is made once, and its parameters have names of their own.
    """
    last: list[Last] = session.info.setdefault(_LAST, [])
    last.append((statement, facts))


def count_change(session: Session, topic: Topic, written_before: int) -> None:
    """Write what comes at the end of a transaction, and count it.

    It is not counted if it has written nothing since `rows_written` was called.
    """
    session.flush()
    for write in session.info.get(_AT_END, ()):
        write(session)
    if session.get_bind().dialect.name == "sqlite":
        if topic in COUNTED and rows_written(session) != written_before:
            session.connection().execute(_COUNT_IN_FILE, {"topic": topic.value})
        return
    last: list[Last] = session.info.get(_LAST, [])
    channel = session.info.get(_CHANNEL)
    facts = {name: value for _, some in last for name, value in some.items()}
    statements = [statement for statement, _ in last]
    if topic in COUNTED:
        statements.append(_counting(notifies=channel is not None, is_certain=bool(last)))
        facts |= {"topic": topic.value, "shard": _DRAW.randrange(_SHARDS), "channel": channel}
    elif channel is not None:
        session.connection().execute(_NOTIFY, {"channel": channel})
    if statements:
        session.connection().execute(_together(tuple(statements)), facts)


@functools.cache
def _counting(*, notifies: bool, is_certain: bool) -> Insert:
    """Count a transaction: if ``is_certain``, whatever it has done before, because it writes in this statement."""
    row: Select[*tuple[Any, ...]] = select(
        bindparam("topic", type_=Text), bindparam("shard", type_=Integer), literal_column("1")
    )
    if not is_certain:
        # A transaction that has neither written nor locked a row has no number.
        row = row.where(func.pg_current_xact_id_if_assigned().is_not(None))
    count = insert(_TABLE).from_select([*_TABLE.c.keys()], row)
    more = {"changes": _TABLE.c.changes + literal_column("1")}
    count = count.on_conflict_do_update(index_elements=["topic", "shard"], set_=more)
    return count.returning(_NOTIFICATION) if notifies else count


@functools.lru_cache(maxsize=256)
def _together(statements: tuple[Insert, ...]) -> Insert:
    """Return one statement, which takes the time of one: to send it takes longer than to insert a row."""
    *others, last = statements
    return last.add_cte(*(each.cte(f"written_{number}") for number, each in enumerate(others)))

"""The rows of queued jobs, each given to an owner in the statement that finds it, where the database has such ones."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import cast

from sqlalchemy import ColumnElement, Select, Table, Update, bindparam, func, select, update
from sqlalchemy.orm import Session

from db.engine.columns import UtcDateTime
from db.jobs.rows import LINE
from db.models import Job
from loopwright.codegen.kinds import JobState

ClaimedRow = SimpleNamespace
"""What `claim_row` returns: the columns `LINE` of the job, its module and its space, by their names."""

_JOBS = cast(Table, Job.__table__)
_COLUMNS = [_JOBS.c[name] for name in (*(column.key for column in LINE), "module_json", "space_json")]


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that begins ``now``."""

    owner: str
    token: str
    expires_at: datetime
    now: datetime


def claim_row(session: Session, which: Select[str], facts: Mapping[str, object], lease: Lease) -> ClaimedRow | None:
    """Put a job under a lease, and return it as it then is; None if there is no such job.

    ``which`` selects the id of a queued job and locks it; ``facts`` are its parameters.
    """
    connection = session.connection()
    claim = asdict(lease)
    if connection.dialect.name == "sqlite":
        # Releases of SQLite before 3.35 have no RETURNING.
        job_id = connection.scalar(which, facts)
        if job_id is None:
            return None
        connection.execute(_CLAIM_ONE, {"job_id": job_id, **claim})
        line = connection.execute(_CLAIMED, {"job_id": job_id}).one_or_none()
    else:
        line = connection.execute(_claiming(which), {**facts, **claim}).one_or_none()
    return None if line is None else ClaimedRow(**dict(zip(_NAMES, line, strict=True)))


@functools.cache
def _claiming(which: Select[str]) -> Update:
    return _claim(_JOBS.c.id == which.correlate(None).scalar_subquery()).returning(*_COLUMNS)


def _claim(condition: ColumnElement[bool]) -> Update:
    return (
        update(_JOBS)
        .where(condition)
        .values(
            state=JobState.RUNNING,
            lease_owner=bindparam("owner", type_=_JOBS.c.lease_owner.type),
            lease_token=bindparam("token", type_=_JOBS.c.lease_token.type),
            lease_expires_at=bindparam("expires_at", type_=UtcDateTime()),
            started_at=func.coalesce(_JOBS.c.started_at, bindparam("now", type_=UtcDateTime())),
            attempts=_JOBS.c.attempts + 1,
        )
    )


_NAMES = [column.key for column in _COLUMNS]
_OF_ID = _JOBS.c.id == bindparam("job_id", type_=_JOBS.c.id.type)
_CLAIM_ONE = _claim(_OF_ID)
_CLAIMED = select(*_COLUMNS).where(_OF_ID)

"""The use of each user on each day (UTC), and the users' limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, time, timedelta
from typing import Any

from sqlalchemy import Select, bindparam, func, select, union
from sqlalchemy.orm import Session

from db.access.views import DayView, Quota, UseView
from db.conditions import trials_begun
from db.engine.changes import Topic
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.engine.statements import cache_statements
from db.errors import QuotaExceeded
from db.inputs import NewJob
from db.models import Job, JobCount, TrialTally, Usage, User
from db.upsert import add, insert_of
from loopwright.codegen.kinds import JobState
from tuner.types import Span, device_seconds

_ACTIVE = (JobState.QUEUED, JobState.RUNNING)


NEW_USER = Quota(active_jobs=50, daily_trials=50_000, daily_device_seconds=12 * 3600.0, daily_bytes=2**30)
"""What a new user may use unless an admin says otherwise. Not tuned."""


class Uses:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def of(self, user_name: str, days: int = 30) -> UseView:
        """Return what a user uses now, and used in the last ``days`` days of use."""
        kept, tallied = (select(each.day).where(each.user_name == user_name) for each in (Usage, TrialTally))
        known = union(kept, tallied).subquery()
        with self._sessions.read() as session:
            newest = session.scalars(select(known.c.day).order_by(known.c.day.desc()).limit(days)).all()
            today = _used(session, user_name, day_of(self._sessions.now()))
            of_days = tuple(_used(session, user_name, day) for day in newest)
            active_jobs, pending_trials = _active(session, user_name)
        return UseView(active_jobs, pending_trials, today, of_days)

    @retry_conflicts
    def admit_import(self, user_name: str, size: int) -> None:
        """Count the bytes of an import to a user's use. Raise `QuotaExceeded` if that is over the user's limit."""
        with self._sessions.write(Topic.NONE) as session:
            now = self._sessions.now()
            limits = _lock_user(session, user_name)
            _check_bytes(limits, _used(session, user_name, day_of(now)), size, now)
            _add(session, user_name, now, bytes=size)


def day_of(now: datetime) -> str:
    return now.date().isoformat()


def admit(session: Session, jobs: Sequence[NewJob], now: datetime) -> None:
    """Count new jobs of one user, at least one, to the user's use. Raise `QuotaExceeded` if that is over a limit.

    The user's row is locked: of two jobs that would fit one at a time, the second is refused.
    """
    [user_name] = {new.user_name for new in jobs}
    limits = _lock_user(session, user_name)
    size = sum(new.bytes for new in jobs)
    used, active_jobs, pending_trials = _use_more(session, user_name, now, jobs=len(jobs), size=size)
    trials = pending_trials + used.trials
    tomorrow = _until_tomorrow(now)
    _check(limits.active_jobs, active_jobs, len(jobs), "jobs that are queued or running", None)
    _check(limits.daily_trials, trials, sum(new.budget.max_trials for new in jobs), "trials a day (UTC)", tomorrow)
    # A job's time on devices is not known before: it may begin while any is left.
    _check(limits.daily_device_seconds, int(used.device_seconds), 1, "device seconds a day (UTC)", tomorrow)
    _check_bytes(limits, used, size, now)


def add_device_time(session: Session, user_name: str, attempt: Span, now: datetime) -> None:
    """Add an attempt at a trial that goes on to its user's use."""
    _add(session, user_name, now, device_seconds=device_seconds([attempt]))


def _lock_user(session: Session, user_name: str) -> Quota:
    # A statement of its own: what the same one counts could be older than the lock.
    return Quota(*session.execute(_locked_user(), {"user_name": user_name}).one())


@cache_statements
def _locked_user() -> Select[*tuple[Any, ...]]:
    limits = (getattr(User, limit.name) for limit in fields(Quota))
    return select(*limits).where(User.name == bindparam("user_name")).with_for_update(key_share=True)


def _until_tomorrow(now: datetime) -> int:
    """Return the seconds until the next day (UTC)."""
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), now.tzinfo)
    return int((midnight - now).total_seconds()) + 1


def _check_bytes(limits: Quota, used: DayView, size: int, now: datetime) -> None:
    what = "bytes of modules and imports a day (UTC)"
    _check(limits.daily_bytes, used.bytes, size, what, _until_tomorrow(now))


def _check(limit: float | None, used: int, requested: int, what: str, retry_after_s: int | None) -> None:
    if limit is not None and used + requested > limit:
        detail = f"Your limit is {limit:,g} {what}; {used:,} are in use, and this request needs {requested:,} more."
        raise QuotaExceeded(detail, retry_after_s)


def _active(session: Session, user_name: str) -> tuple[int, int]:
    """Return the active jobs of a user, and the trials that these may still make."""
    jobs, promised, made = session.execute(_promises(), {"user_name": user_name}).one()
    return int(jobs), max(0, int(promised) - int(made))


@cache_statements
def _promises() -> Select[int, int, int]:
    mine = JobCount.user_name == bindparam("user_name"), JobCount.state.in_(_ACTIVE)
    counted = (
        select(func.coalesce(func.sum(column), 0)).where(*mine).scalar_subquery()
        for column in (JobCount.jobs, JobCount.promised_trials)
    )
    return select(*counted, trials_begun(Job.user_name == bindparam("user_name")).scalar_subquery())


def _use_more(session: Session, user_name: str, now: datetime, *, jobs: int, size: int) -> tuple[DayView, int, int]:
    """Add jobs and bytes to the use of a user's day; return `_used` and `_active` as they were before."""
    day = day_of(now)
    facts = {"user_name": user_name, "day": day}
    if session.get_bind().dialect.name == "sqlite":
        before = session.execute(_use_and_promises(), facts).one()
        _add(session, user_name, now, jobs=jobs, bytes=size)
    else:
        before = session.execute(_use_and_promises_adding(), {**facts, "more_jobs": jobs, "more_bytes": size}).one()
    *used, active_jobs, promised, made = before
    return _day(day, used), int(active_jobs), max(0, int(promised) - int(made))


@cache_statements
def _use_and_promises_adding() -> Select[*tuple[Any, ...]]:
    """Select what `_use_and_promises` does, of the time before the statement, and add to it."""
    columns = Usage.__table__.c
    more = {name: bindparam(f"more_{name}", type_=columns[name].type) for name in ("jobs", "bytes")}
    key = {name: bindparam(name, type_=columns[name].type) for name in ("user_name", "day")}
    adding = insert_of("postgresql", Usage).values(**key, **more, trials=0, device_seconds=0.0)
    sums = {name: getattr(Usage, name) + adding.excluded[name] for name in more}
    adding = adding.on_conflict_do_update(index_elements=list(key), set_=sums)
    return _use_and_promises().add_cte(adding.cte("added"))


@cache_statements
def _use_and_promises() -> Select[*tuple[Any, ...]]:
    return _use().add_columns(*_promises().selected_columns)


def _used(session: Session, user_name: str, day: str) -> DayView:
    """Return the use of a user on a day, in one statement: trials move from tallies to the table of use."""
    return _day(day, session.execute(_use(), {"user_name": user_name, "day": day}).one())


def _day(day: str, used: Sequence[Any]) -> DayView:
    jobs, trials, seconds, size, more_trials, more_seconds = used
    return DayView(day, int(jobs), int(trials + more_trials), seconds + more_seconds, int(size))


@cache_statements
def _use() -> Select[*tuple[Any, ...]]:
    own, tallied = (
        (table.user_name == bindparam("user_name"), table.day == bindparam("day")) for table in (Usage, TrialTally)
    )
    kept = [
        select(func.coalesce(func.sum(column), 0)).where(*own).scalar_subquery()
        for column in (Usage.jobs, Usage.trials, Usage.device_seconds, Usage.bytes)
    ]
    more = [
        select(func.coalesce(func.sum(column), 0)).where(*tallied).scalar_subquery()
        for column in (TrialTally.trials, TrialTally.device_seconds)
    ]
    return select(*kept, *more)


def _add(session: Session, user_name: str, now: datetime, **more: float) -> None:
    sums = {"jobs": 0, "trials": 0, "device_seconds": 0.0, "bytes": 0} | more
    add(session, Usage, {"user_name": user_name, "day": day_of(now)}, sums)

"""The use of each user on each day (UTC), and the users' limits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.access.views import DayView, Quota, UseView
from db.engine.connections import Sessions
from db.errors import QuotaExceeded
from db.inputs import NewJob
from db.models import Job, Task, Usage, User
from db.upsert import insert
from loopwright.codegen.kinds import JobState
from tuner.types import Outcome, Span, device_seconds

_ACTIVE = (JobState.QUEUED, JobState.RUNNING)


NEW_USER = Quota(active_jobs=50, daily_trials=50_000, daily_device_seconds=12 * 3600.0, daily_bytes=2**30)
"""What a new user may use unless an admin says otherwise. Not tuned."""


class Uses:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def of(self, user_name: str, days: int = 30) -> UseView:
        """Return what a user uses now, and used in the last ``days`` days of use."""
        wanted = select(Usage).where(Usage.user_name == user_name).order_by(Usage.day.desc()).limit(days)
        today = day_of(self._sessions.now())
        with self._sessions.read() as session:
            rows = [_view(row) for row in session.scalars(wanted)]
            active_jobs, pending_trials = _active(session, user_name)
        is_today = bool(rows) and rows[0].day == today
        return UseView(active_jobs, pending_trials, rows[0] if is_today else DayView(today, 0, 0, 0.0, 0), tuple(rows))

    def admit_import(self, user_name: str, size: int) -> None:
        """Count the bytes of an import to a user's use. Raise `QuotaExceeded` if that is over the user's limit."""
        with self._sessions.write() as session:
            now = self._sessions.now()
            user = session.scalars(select(User).where(User.name == user_name).with_for_update(key_share=True)).one()
            used = session.get(Usage, (user.name, day_of(now)))
            _check_bytes(user, used, size, now)
            _add(session, user.name, now, bytes=size)


def day_of(now: datetime) -> str:
    return now.date().isoformat()


def admit(session: Session, jobs: Sequence[NewJob], now: datetime) -> None:
    """Count new jobs of one user, at least one, to the user's use. Raise `QuotaExceeded` if that is over a limit.

    The user's row is locked: of two jobs that would fit one at a time, the second is refused.
    """
    [user_name] = {new.user_name for new in jobs}
    user = session.scalars(select(User).where(User.name == user_name).with_for_update(key_share=True)).one()
    used = session.get(Usage, (user.name, day_of(now)))
    active_jobs, pending_trials = _active(session, user.name)
    trials = pending_trials + (used.trials if used else 0)
    tomorrow = _until_tomorrow(now)
    _check(user.active_jobs, active_jobs, len(jobs), "jobs that are queued or running", None)
    _check(user.daily_trials, trials, sum(new.budget.max_trials for new in jobs), "trials a day (UTC)", tomorrow)
    # A job's time on devices is not known before: it may begin while any is left.
    seconds = int(used.device_seconds if used else 0)
    _check(user.daily_device_seconds, seconds, 1, "device seconds a day (UTC)", tomorrow)
    size = sum(new.bytes for new in jobs)
    _check_bytes(user, used, size, now)
    _add(session, user.name, now, jobs=len(jobs), bytes=size)


def add_to_usage(session: Session, user_name: str, outcome: Outcome, now: datetime) -> None:
    """Add a finished trial to its user's use."""
    _add(session, user_name, now, trials=1, device_seconds=device_seconds(outcome.spans))


def add_device_time(session: Session, user_name: str, attempt: Span, now: datetime) -> None:
    """Add an attempt at a trial that goes on to its user's use."""
    _add(session, user_name, now, device_seconds=device_seconds([attempt]))


def _until_tomorrow(now: datetime) -> int:
    """Return the seconds until the next day (UTC)."""
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), now.tzinfo)
    return int((midnight - now).total_seconds()) + 1


def _check_bytes(user: User, used: Usage | None, size: int, now: datetime) -> None:
    what = "bytes of modules and imports a day (UTC)"
    _check(user.daily_bytes, used.bytes if used else 0, size, what, _until_tomorrow(now))


def _check(limit: float | None, used: int, requested: int, what: str, retry_after_s: int | None) -> None:
    if limit is not None and used + requested > limit:
        detail = f"Your limit is {limit:,g} {what}; {used:,} are in use, and this request needs {requested:,} more."
        raise QuotaExceeded(detail, retry_after_s)


def _active(session: Session, user_name: str) -> tuple[int, int]:
    """Return the active jobs of a user, and the trials that these may still make."""
    mine = Job.user_name == user_name, Job.state.in_(_ACTIVE)
    jobs, allowed = session.execute(
        select(func.count(), func.coalesce(func.sum(Job.budget["max_trials"].as_integer()), 0)).where(*mine)
    ).one()
    if not jobs:
        return 0, 0
    made = select(func.sum(Task.trials)).join(Job, Task.job_id == Job.id).where(*mine)
    return jobs, max(0, allowed - (session.scalar(made) or 0))


def _add(session: Session, user_name: str, now: datetime, **more: float) -> None:
    added = {"jobs": 0, "trials": 0, "device_seconds": 0.0, "bytes": 0} | more
    statement = insert(session, Usage).values(user_name=user_name, day=day_of(now), **added)
    columns = {name: getattr(Usage, name) + value for name, value in more.items()}
    session.execute(statement.on_conflict_do_update(index_elements=["user_name", "day"], set_=columns))


def _view(row: Usage) -> DayView:
    return DayView(row.day, row.jobs, row.trials, row.device_seconds, row.bytes)

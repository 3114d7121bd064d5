"""The queue: which job is next, found by an index however many jobs wait.

The queue consists of lanes. A lane has the jobs of one device class, set of labels, priority and user, in the order in
which they are served, and lies in one piece in the index ``ix_jobs_queue``. Whoever looks for the next job looks at the
first job of each lane of the highest priority.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Select, bindparam, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session, undefer

from db.conditions import ASKS_FOR_LABELS, QUEUED, RUNNING
from db.devices import same_machine
from db.engine.statements import cache_statements
from db.inputs import LAST, LabelledMachine
from db.models import NO_LABELS, Job
from db.models import DeviceClass as DeviceClassRow
from tuner.types import DeviceClass

FAR = datetime.max.replace(tzinfo=UTC)
"""Later than any job was queued, whatever a clock has done."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The jobs of a ``priority`` or a higher one that have waited ``since``, or for longer."""

    priority: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Lane:
    """Jobs of the queue that only their age sets apart; the first one has waited ``since``."""

    device_class_id: str
    labels_json: str
    priority: int
    user_name: str
    since: datetime

    def lock_first(self, session: Session, until: datetime = FAR) -> Job | None:
        """Lock and return the first job that nobody else has locked, of those that have waited since ``until``.

        It comes with its module. None if there is none any more.
        """
        lane = {
            "until": until,
            "device_class_id": self.device_class_id,
            "labels_json": self.labels_json,
            "priority": self.priority,
            "user_name": self.user_name,
        }
        return session.scalar(_FIRST, lane)


def lanes(session: Session, machines: Collection[LabelledMachine] | None) -> Iterator[list[Lane]]:
    """Yield the lanes with jobs for these machines, or for any, those of the highest priority first."""
    places = _places(session, machines)
    below: int | None = None
    while True:
        highest = [
            (labels_json, device_class_id, priority)
            for labels_json, classes in places
            for device_class_id, priority in session.execute(
                _highest(classes, is_bounded=below is not None), {"labels_json": labels_json, "below": below}
            )
        ]
        below = max((priority for *_, priority in highest), default=None)
        if below is None:
            return
        yield [
            Lane(device_class_id, labels_json, priority, user_name, since)
            for labels_json, device_class_id, priority in highest
            if priority == below
            for user_name, since in session.execute(
                _USERS, {"device_class_id": device_class_id, "labels_json": labels_json, "priority": priority}
            )
        ]


@dataclass(frozen=True, slots=True)
class Running:
    """How many jobs of each user are running, users without any left out, and when the first lease of them ends."""

    by_user: dict[str, int]
    first_end: datetime | None

    @staticmethod
    def read(session: Session) -> Running:
        rows = session.execute(_RUNNING).all()
        ends = [end for *_, end in rows if end is not None]
        return Running({user_name: jobs for user_name, jobs, _ in rows}, min(ends, default=None))


def turns(
    session: Session, machines: Collection[LabelledMachine] | None, running: Mapping[str, int], now: datetime
) -> Iterator[Lane]:
    """Yield the lanes with jobs for these machines, or for any, in the order in which they are served.

    That is the highest priority first, then the user with the fewest ``running`` jobs, then the oldest. Jobs that no
    user waits for are left out until they are due (`NewJob.delay_s`); a user's job is due at once, whatever the clocks
    of several hosts say.
    """
    for of_priority in lanes(session, machines):
        due = [lane for lane in of_priority if lane.priority > LAST or lane.since <= now]
        yield from sorted(due, key=lambda lane: (running.get(lane.user_name, 0), lane.since))


def _places(
    session: Session, machines: Collection[LabelledMachine] | None
) -> list[tuple[str, frozenset[DeviceClass] | None]]:
    """Return the labels that jobs of the queue ask for, each with the device classes that have them.

    None: all device classes; labels that no machine has are left out.
    """
    found: list[tuple[str, frozenset[DeviceClass] | None]] = []
    for labels_json in (NO_LABELS, *session.scalars(_ASKED_LABELS)):
        if machines is None:
            found.append((labels_json, None))
            continue
        wanted = json.loads(labels_json).items()
        classes = frozenset(machine.device_class for machine in machines if wanted <= machine.labels)
        if classes:
            found.append((labels_json, classes))
    return found


@cache_statements
def _highest(classes: frozenset[DeviceClass] | None, *, is_bounded: bool) -> Select[str, int]:
    """Select the device classes with jobs that ask for ``labels_json``, and the highest priority of these.

    With ``is_bounded``, the highest that is less than ``below``. None: of all device classes.
    """
    conditions = [QUEUED, Job.device_class_id == DeviceClassRow.id, Job.labels_json == bindparam("labels_json")]
    if is_bounded:
        conditions.append(Job.priority < bindparam("below"))
    highest = select(func.max(Job.priority)).where(*conditions).correlate(DeviceClassRow).scalar_subquery()
    priorities = select(DeviceClassRow.id, highest.label("priority"))
    if classes is not None:
        priorities = priorities.where(or_(*map(same_machine, sorted(classes, key=lambda each: each.id))))
    found = priorities.subquery()
    return select(found.c.id, found.c.priority).where(found.c.priority.is_not(None))


def _distinct(column: InstrumentedAttribute[str], *conditions: ColumnElement[bool]) -> Select[str]:
    """Select the distinct values of a column by one seek each in an index that the conditions lead to its beginning.

    A loose index scan (PostgreSQL's wiki): ``SELECT DISTINCT`` would read all rows.
    """
    steps = select(func.min(column).label("value")).where(*conditions).cte("steps", recursive=True)
    following = select(func.min(column)).where(column > steps.c.value, *conditions).correlate(steps)
    steps = steps.union_all(select(following.scalar_subquery()).where(steps.c.value.is_not(None)))
    return select(steps.c.value).where(steps.c.value.is_not(None))


def _users(place: Sequence[ColumnElement[bool]]) -> Select[str, datetime]:
    """Select the users with jobs in a place, each with the time since which the first of them has waited."""
    users = _distinct(Job.user_name, *place).subquery()
    oldest = select(func.min(Job.queued_at)).where(*place, Job.user_name == users.c.value).correlate(users)
    return select(users.c.value, oldest.scalar_subquery())


# Statements that are built once: to build them takes longer than to run them.
_PLACE = (
    QUEUED,
    Job.device_class_id == bindparam("device_class_id"),
    Job.labels_json == bindparam("labels_json"),
    Job.priority == bindparam("priority"),
)
_ASKED_LABELS = _distinct(Job.labels_json, ASKS_FOR_LABELS)
_USERS = _users(_PLACE)
_FIRST = (
    select(Job)
    .options(undefer(Job.module_json), undefer(Job.space_json))
    .where(*_PLACE, Job.user_name == bindparam("user_name"), Job.queued_at <= bindparam("until"))
    .order_by(Job.queued_at, Job.id)
    .limit(1)
    .with_for_update(skip_locked=True, key_share=True)
)
_RUNNING = select(Job.user_name, func.count(), func.min(Job.lease_expires_at)).where(RUNNING).group_by(Job.user_name)

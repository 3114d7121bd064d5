"""The queue: which job is next, found by an index however many jobs wait.

The queue consists of lanes. A lane has the jobs of one device class, set of labels, priority and user, in the order in
which they are served, and lies in one piece in the index ``ix_jobs_queue``. Whoever looks for the next job looks at the
first job of each lane of the highest priority.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Select, bindparam, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from db.conditions import ASKS_FOR_LABELS, QUEUED, RUNNING
from db.devices import same_machine
from db.inputs import LabelledMachine
from db.models import NO_LABELS, Job
from db.models import DeviceClass as DeviceClassRow

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

    def lock_first(self, session: Session, until: datetime = FAR) -> str | None:
        """Lock and return the first job that nobody else has locked, of those that have waited since ``until``.

        None if there is none any more.
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
            for device_class_id, priority in session.execute(_highest(classes, labels_json, below))
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


def running_jobs_by_user(session: Session) -> dict[str, int]:
    """Return how many jobs of each user are running; users without any are left out."""
    return dict(session.execute(_RUNNING).all())


def _places(
    session: Session, machines: Collection[LabelledMachine] | None
) -> list[tuple[str, ColumnElement[bool] | None]]:
    """Return the labels that jobs of the queue ask for, each with a condition on the device classes that have them.

    Without a condition, all device classes have them; labels that no machine has are left out.
    """
    found: list[tuple[str, ColumnElement[bool] | None]] = []
    for labels_json in (NO_LABELS, *session.scalars(_ASKED_LABELS)):
        if machines is None:
            found.append((labels_json, None))
            continue
        wanted = json.loads(labels_json).items()
        classes = {machine.device_class for machine in machines if wanted <= machine.labels}
        if classes:
            found.append((labels_json, or_(*map(same_machine, classes))))
    return found


def _highest(classes: ColumnElement[bool] | None, labels_json: str, below: int | None) -> Select[str, int]:
    """Select the device classes with jobs, and the highest priority of these that is less than ``below``."""
    conditions = [QUEUED, Job.device_class_id == DeviceClassRow.id, Job.labels_json == labels_json]
    if below is not None:
        conditions.append(Job.priority < below)
    highest = select(func.max(Job.priority)).where(*conditions).correlate(DeviceClassRow).scalar_subquery()
    priorities = select(DeviceClassRow.id, highest.label("priority"))
    found = (priorities if classes is None else priorities.where(classes)).subquery()
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
    select(Job.id)
    .where(*_PLACE, Job.user_name == bindparam("user_name"), Job.queued_at <= bindparam("until"))
    .order_by(Job.queued_at, Job.id)
    .limit(1)
    .with_for_update(skip_locked=True, key_share=True)
)
_RUNNING = select(Job.user_name, func.count()).where(RUNNING).group_by(Job.user_name)

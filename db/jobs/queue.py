"""The queue: which job is next, found by an index however many jobs wait.

The queue consists of lanes. A lane has the jobs of one device class, set of labels, priority and user, in the order in
which they are served, and lies in one piece in the index ``ix_jobs_queue``. Whoever looks for the next job looks at the
first job of each lane of the highest priority.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, CompoundSelect, Select, bindparam, func, null, or_, select, union_all
from sqlalchemy.orm import Session

from db.conditions import ASKS_FOR_LABELS, QUEUED, RUNNING
from db.devices import same_machine
from db.engine.statements import cache_statements
from db.inputs import LabelledMachine
from db.jobs.claimed_rows import ClaimedRow, Lease, claim_row
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

    def claim_first(self, session: Session, lease: Lease, until: datetime = FAR) -> ClaimedRow | None:
        """Claim the first job that nobody else has locked, of those that have waited since ``until``.

        None if there is none any more.
        """
        lane = {
            "until": until,
            "of_class": self.device_class_id,
            "with_labels": self.labels_json,
            "of_priority": self.priority,
            "of_user": self.user_name,
        }
        return claim_row(session, _FIRST, lane, lease)


@dataclass(frozen=True, slots=True)
class Running:
    """How many jobs of each user are running, users without any left out, and when the first lease of them ends.

    ``asked_labels`` are the labels that jobs of the queue ask for.
    """

    by_user: dict[str, int]
    first_end: datetime | None
    asked_labels: tuple[str, ...]

    @staticmethod
    def read(session: Session) -> Running:
        rows = session.execute(_RUNNING_AND_ASKED).all()
        ends = [end for *_, end in rows if end is not None]
        return Running(
            {user_name: jobs for user_name, jobs, _ in rows if jobs is not None},
            min(ends, default=None),
            tuple(labels_json for labels_json, jobs, _ in rows if jobs is None),
        )


def lanes(
    session: Session, machines: Collection[LabelledMachine] | None, asked_labels: Collection[str]
) -> Iterator[list[Lane]]:
    """Yield the lanes with jobs for these machines, or for any, those of the highest priority first."""
    places = _places(machines, asked_labels)
    below: int | None = None
    while True:
        highest = [
            Lane(device_class_id, labels_json, priority, user_name, since)
            for labels_json, classes in places
            for device_class_id, priority, user_name, since in session.execute(
                _highest(classes, is_bounded=below is not None), {"with_labels": labels_json, "below": below}
            )
        ]
        below = max((lane.priority for lane in highest), default=None)
        if below is None:
            return
        yield [lane for lane in highest if lane.priority == below]


def turns(session: Session, machines: Collection[LabelledMachine] | None, running: Running) -> Iterator[Lane]:
    """Yield the lanes with jobs for these machines, or for any, in the order in which they are served.

    That is the highest priority first, then the user with the fewest ``running`` jobs, then the oldest.
    """
    for of_priority in lanes(session, machines, running.asked_labels):
        yield from sorted(of_priority, key=lambda lane: (running.by_user.get(lane.user_name, 0), lane.since))


def _places(
    machines: Collection[LabelledMachine] | None, asked_labels: Collection[str]
) -> list[tuple[str, frozenset[DeviceClass] | None]]:
    """Return the labels that jobs of the queue ask for, each with the device classes that have them.

    None: all device classes; labels that no machine has are left out.
    """
    found: list[tuple[str, frozenset[DeviceClass] | None]] = []
    for labels_json in (NO_LABELS, *asked_labels):
        if machines is None:
            found.append((labels_json, None))
            continue
        wanted = json.loads(labels_json).items()
        classes = frozenset(machine.device_class for machine in machines if wanted <= machine.labels)
        if classes:
            found.append((labels_json, classes))
    return found


# Loose index scans (PostgreSQL's wiki): each value by one seek in an index that the conditions lead to its beginning,
# where SELECT DISTINCT would read all rows.


@cache_statements
def _highest(classes: frozenset[DeviceClass] | None, *, is_bounded: bool) -> Select[str, int, str, datetime]:
    """Select the lanes of the highest priority of jobs that ask for the labels ``with_labels``.

    With ``is_bounded``, of the highest that is less than ``below``. None: of all device classes.
    """
    conditions = [QUEUED, Job.device_class_id == DeviceClassRow.id, Job.labels_json == bindparam("with_labels")]
    if is_bounded:
        conditions.append(Job.priority < bindparam("below"))
    highest = select(func.max(Job.priority)).where(*conditions).correlate(DeviceClassRow).scalar_subquery()
    priorities = select(DeviceClassRow.id.label("id"), highest.label("priority"))
    if classes is not None:
        priorities = priorities.where(or_(*map(same_machine, sorted(classes, key=lambda each: each.id))))
    of_classes = priorities.cte("of_classes")
    first = select(func.min(Job.user_name)).where(*_place(of_classes.c.id, of_classes.c.priority))
    users = (
        select(of_classes.c.id, of_classes.c.priority, first.correlate(of_classes).scalar_subquery().label("user_name"))
        .where(of_classes.c.priority == select(func.max(of_classes.c.priority)).correlate(None).scalar_subquery())
        .cte("users_in_turn", recursive=True)
    )
    place = _place(users.c.id, users.c.priority)
    following = select(func.min(Job.user_name)).where(*place, Job.user_name > users.c.user_name).correlate(users)
    users = users.union_all(
        select(users.c.id, users.c.priority, following.scalar_subquery()).where(users.c.user_name.is_not(None))
    )
    place = _place(users.c.id, users.c.priority)
    oldest = select(func.min(Job.queued_at)).where(*place, Job.user_name == users.c.user_name).correlate(users)
    lanes_found = select(users.c.id, users.c.priority, users.c.user_name, oldest.scalar_subquery())
    return lanes_found.where(users.c.user_name.is_not(None))


def _place(device_class_id: ColumnElement[str], priority: ColumnElement[int]) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of jobs in the queue for a device class that ask for labels and have a priority."""
    labels = Job.labels_json == bindparam("with_labels")
    return QUEUED, Job.device_class_id == device_class_id, labels, Job.priority == priority


def _asked_labels() -> Select[str, None, None]:
    steps = select(func.min(Job.labels_json).label("value")).where(ASKS_FOR_LABELS).cte("steps", recursive=True)
    following = select(func.min(Job.labels_json)).where(Job.labels_json > steps.c.value, ASKS_FOR_LABELS)
    steps = steps.union_all(select(following.correlate(steps).scalar_subquery()).where(steps.c.value.is_not(None)))
    return select(steps.c.value, null(), null()).where(steps.c.value.is_not(None))


# Statements that are built once: to build them takes longer than to run them.
_FIRST = (
    select(Job.id)
    .where(
        *_place(bindparam("of_class"), bindparam("of_priority")),
        Job.user_name == bindparam("of_user"),
        Job.queued_at <= bindparam("until"),
    )
    .order_by(Job.queued_at, Job.id)
    .limit(1)
    .with_for_update(skip_locked=True, key_share=True)
)
_RUNNING_AND_ASKED: CompoundSelect[*tuple[Any, ...]] = union_all(
    select(Job.user_name, func.count(), func.min(Job.lease_expires_at)).where(RUNNING).group_by(Job.user_name),
    _asked_labels(),
)

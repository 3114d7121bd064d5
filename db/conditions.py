"""Conditions of partial indexes, spelled out: with parameters in their place, databases would not use the indexes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, literal_column, select

from db.models import NO_LABELS, Job, Task
from loopwright.codegen.kinds import JobState


def _spelled(value: str) -> ColumnElement[Any]:
    return literal_column(f"'{value}'")


TRUE: ColumnElement[bool] = literal_column("TRUE")
FALSE: ColumnElement[bool] = literal_column("FALSE")

QUEUED = Job.state == _spelled(JobState.QUEUED)
RUNNING = Job.state == _spelled(JobState.RUNNING)
ASKS_FOR_LABELS = and_(QUEUED, Job.labels_json != _spelled(NO_LABELS))
ANSWERED = and_(QUEUED, Job.is_answered.is_(TRUE))
UNFINISHED = Job.state.in_([_spelled(JobState.QUEUED), _spelled(JobState.RUNNING)])
BEGUN = and_(Job.started_at.is_not(None), Job.finished_at.is_(None))
"""Jobs whose tasks may have trials, and that have not ended."""


def trials_begun(*conditions: ColumnElement[bool]) -> Select[int]:
    """Select how many trials the begun jobs have made, or those of them with these ``conditions``."""
    # Not as a join: SQLite would look at all tasks.
    of_job = select(func.sum(Task.trials)).where(Task.job_id == Job.id).correlate(Job).scalar_subquery()
    return select(func.coalesce(func.sum(of_job), 0)).select_from(Job).where(BEGUN, *conditions)

"""Visibility of rows: a user sees what is not private, and the user's own.

A private job is seen by its user and by admins, with its tasks, events, comparison, gate and rechecks. A workload is
seen by all, once any job that is not private has it, or if an import had it first; else by the users who submitted or
imported it. Records,
certificates and bests are seen by whoever sees their workload: who has a function gets what is known of it.

The conditions are added to every SELECT of a read (`db.engine.connections.Sessions`), so that no query can forget
them. Writes are not limited: what they concern is read before.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from sqlalchemy import ColumnElement, exists, or_
from sqlalchemy.orm import InstrumentedAttribute, ORMExecuteState, with_loader_criteria
from sqlalchemy.orm.util import LoaderCriteriaOption

from db.models import Best, Certificate, Comparison, Event, Gate, Job, Recheck, Task, Trial, Workload, WorkloadHolder

# Aliases, so that they are not taken for the tables of the query that the conditions are added to.
_JOBS = Job.__table__.alias("visible_jobs")
_WORKLOADS = Workload.__table__.alias("visible_workloads")
_HOLDERS = WorkloadHolder.__table__.alias("visible_holders")


@dataclass(frozen=True, slots=True)
class Viewer:
    """``user_name`` None: a guest, who sees what everybody shares."""

    user_name: str | None


def limit_to(viewer: Viewer, state: ORMExecuteState) -> None:
    """Add the conditions of ``viewer`` to a SELECT that a session is about to run."""
    if state.is_select:
        state.statement = state.statement.options(*_criteria(viewer))


@functools.lru_cache(maxsize=1024)
def _criteria(viewer: Viewer) -> tuple[LoaderCriteriaOption, ...]:
    """Return the conditions of ``viewer``: made anew for each statement, they would cost more than it does."""
    jobs = or_(Job.private.is_(False), Job.user_name == viewer.user_name)
    workloads = or_(Workload.shared, _holds(viewer, Workload.hash))
    of_job = [
        with_loader_criteria(table, _job_seen(viewer, table.job_id))
        for table in (Task, Event, Comparison, Gate, Recheck)
    ]
    of_workload = [
        with_loader_criteria(table, _workload_seen(viewer, table.workload_hash)) for table in (Trial, Certificate, Best)
    ]
    return (with_loader_criteria(Job, jobs), with_loader_criteria(Workload, workloads), *of_job, *of_workload)


def _job_seen(viewer: Viewer, job_id: InstrumentedAttribute[str]) -> ColumnElement[bool]:
    seen = or_(_JOBS.c.private.is_(False), _JOBS.c.user_name == viewer.user_name)
    return exists().where(_JOBS.c.id == job_id, seen)


def _workload_seen(viewer: Viewer, workload_hash: InstrumentedAttribute[str]) -> ColumnElement[bool]:
    seen = or_(_WORKLOADS.c.shared, _holds(viewer, _WORKLOADS.c.hash))
    return exists().where(_WORKLOADS.c.hash == workload_hash, seen)


def _holds(viewer: Viewer, workload_hash: ColumnElement[str] | InstrumentedAttribute[str]) -> ColumnElement[bool]:
    return exists().where(_HOLDERS.c.workload_hash == workload_hash, _HOLDERS.c.user_name == viewer.user_name)

"""Visibility of rows: a user sees what is not private, and the user's own.

A private job is seen by its user and by admins, with its tasks, events, comparison, gate, rechecks and ablation. A
workload is seen by all, once any job that is not private has it, or if an import had it first; else by the users who
submitted or imported it. Records, certificates and bests are seen by whoever sees their workload: who has a function
gets what is known of it.

The conditions are added to every SELECT of a read (`db.engine.connections.Sessions`), so that no query can forget
them. Writes are not limited: what they concern is read before.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from sqlalchemy import ColumnElement, exists, or_
from sqlalchemy.orm import InstrumentedAttribute, ORMExecuteState, with_loader_criteria
from sqlalchemy.orm.util import LoaderCriteriaOption

from db.conditions import FALSE, TRUE
from db.models import (
    Ablation,
    Best,
    Certificate,
    Comparison,
    Event,
    Gate,
    Job,
    JobCount,
    Recheck,
    Task,
    Trial,
    Workload,
    WorkloadHolder,
)

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
    jobs, counts = (or_(table.private.is_(FALSE), table.user_name == viewer.user_name) for table in (Job, JobCount))
    of_job = [
        with_loader_criteria(table, _job_seen(viewer, table.job_id))
        for table in (Task, Event, Comparison, Gate, Recheck, Ablation)
    ]
    of_workload = [
        with_loader_criteria(table, _workload_seen(viewer, workload_hash))
        for table, workload_hash in (
            (Workload, Workload.hash),
            *((table, table.workload_hash) for table in (Trial, Certificate, Best)),
        )
    ]
    of_themselves = [with_loader_criteria(table, seen) for table, seen in ((Job, jobs), (JobCount, counts))]
    return (*of_themselves, *of_job, *of_workload)


# What is hidden is in small indexes, which are looked into for each row: most is shared. A condition that something is
# seen would read the row of each job or workload, whose columns come after its module.


def _job_seen(viewer: Viewer, job_id: InstrumentedAttribute[str]) -> ColumnElement[bool]:
    return ~exists().where(_JOBS.c.id == job_id, _JOBS.c.private.is_(TRUE), _JOBS.c.user_name != viewer.user_name)


def _workload_seen(viewer: Viewer, workload_hash: InstrumentedAttribute[str]) -> ColumnElement[bool]:
    holds = exists().where(_HOLDERS.c.workload_hash == _WORKLOADS.c.hash, _HOLDERS.c.user_name == viewer.user_name)
    return ~exists().where(_WORKLOADS.c.hash == workload_hash, _WORKLOADS.c.shared.is_(FALSE), ~holds)

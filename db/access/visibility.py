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
from typing import Any, TypeVarTuple

from sqlalchemy import Boolean, Select, exists, func, literal, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import InstrumentedAttribute, ORMExecuteState, Session, with_loader_criteria
from sqlalchemy.orm.util import LoaderCriteriaOption
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from db.conditions import FALSE, TRUE
from db.engine.connections import is_limited
from db.engine.statements import is_made_once
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

Columns = TypeVarTuple("Columns")

# Aliases, so that they are not taken for the tables of the query that the conditions are added to.
_JOBS = Job.__table__.alias("visible_jobs")
_WORKLOADS = Workload.__table__.alias("visible_workloads")
_HOLDERS = WorkloadHolder.__table__.alias("visible_holders")


@dataclass(frozen=True, slots=True)
class Viewer:
    """``user_name`` None: a guest, who sees what everybody shares."""

    user_name: str | None

    @property
    def name(self) -> str:
        """The name that conditions compare with: a guest's is nobody's."""
        return self.user_name or ""


def limit_to(viewer: Viewer, state: ORMExecuteState) -> None:
    """Add the conditions of ``viewer`` to a SELECT that a session is about to run."""
    if state.is_select:
        limited = _limited_once if is_made_once(state.execution_options) else _limited
        state.statement = limited(viewer, state.statement)


def count_seen(session: Session, rows: Select[*Columns], workload_hash: InstrumentedAttribute[str]) -> int:
    """Return how many rows of workloads the viewer of a session sees, without looking whether each is seen.

    ``rows`` selects the rows of a table; ``workload_hash`` is its column.
    """
    counting = _counting_once if is_made_once(rows.get_execution_options()) else _counting
    counted, may_be_hidden, both = counting(rows, workload_hash)
    # Not as statements of the session, which would add the conditions of its viewer.
    if not is_limited(session):
        return session.connection().scalar(counted) or 0
    everything, hidden_from_some = session.connection().execute(both).one()
    if not hidden_from_some:
        return everything
    return everything - hidden_from_some + (session.scalar(may_be_hidden) or 0)


def _limited(viewer: Viewer, statement: Any) -> Any:
    return statement.options(*_criteria(viewer))


_limited_once = functools.lru_cache(maxsize=1024)(_limited)


def _counting(
    rows: Select[*Columns], workload_hash: InstrumentedAttribute[str]
) -> tuple[Select[int], Select[int], Select[int, int]]:
    """Return statements that count all rows, those that somebody may not see, and both."""
    counted = rows.with_only_columns(func.count(), maintain_column_froms=True)
    hidden = select(_WORKLOADS.c.hash).where(_WORKLOADS.c.shared.is_(FALSE))
    may_be_hidden = counted.where(workload_hash.in_(hidden))
    return counted, may_be_hidden, select(counted.scalar_subquery(), may_be_hidden.scalar_subquery())


_counting_once = functools.lru_cache(maxsize=256)(_counting)


@functools.lru_cache(maxsize=1024)
def _criteria(viewer: Viewer) -> tuple[LoaderCriteriaOption, ...]:
    """Return the conditions of ``viewer``: made anew for each statement, they would cost more than it does."""
    jobs, counts = (or_(table.private.is_(FALSE), table.user_name == viewer.name) for table in (Job, JobCount))
    of_job = [
        with_loader_criteria(table, _of_seen_job(table.job_id, viewer))
        for table in (Task, Event, Comparison, Gate, Recheck, Ablation)
    ]
    of_workload = [
        with_loader_criteria(table, _of_seen_workload(workload_hash, viewer))
        for table, workload_hash in (
            (Workload, Workload.hash),
            *((table, table.workload_hash) for table in (Trial, Certificate, Best)),
        )
    ]
    of_themselves = [with_loader_criteria(table, seen) for table, seen in ((Job, jobs), (JobCount, counts))]
    return (*of_themselves, *of_job, *of_workload)


class _Seen(FunctionElement[bool]):
    """A condition on the id of a job, or the hash of a workload, and the name of a viewer.

    It becomes a subquery only where a statement is compiled: a statement that is known is looked up by all its parts,
    and those of ten subqueries would take longer than the statement itself.
    """

    type = Boolean()

    def __init__(self, key: InstrumentedAttribute[str], viewer: Viewer) -> None:
        super().__init__(key, literal(viewer.name))


class _of_seen_job(_Seen):
    inherit_cache = True


class _of_seen_workload(_Seen):
    inherit_cache = True


# What is hidden is in small indexes, which are looked into for each row: most is shared. A condition that something is
# seen would read the row of each job or workload, whose columns come after its module.


@compiles(_of_seen_job)
def _compile_job(seen: _of_seen_job, compiler: SQLCompiler, **how: Any) -> str:
    job_id, name = seen.clauses
    return compiler.process(
        ~exists().where(_JOBS.c.id == job_id, _JOBS.c.private.is_(TRUE), _JOBS.c.user_name != name), **how
    )


@compiles(_of_seen_workload)
def _compile_workload(seen: _of_seen_workload, compiler: SQLCompiler, **how: Any) -> str:
    workload_hash, name = seen.clauses
    holds = exists().where(_HOLDERS.c.workload_hash == _WORKLOADS.c.hash, _HOLDERS.c.user_name == name)
    return compiler.process(
        ~exists().where(_WORKLOADS.c.hash == workload_hash, _WORKLOADS.c.shared.is_(FALSE), ~holds), **how
    )

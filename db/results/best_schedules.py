"""All bests in any order, from any row: fast with a hundred thousand bests, on both databases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVarTuple

from sqlalchemy import ColumnElement, Integer, Select, Subquery, UnaryExpression, bindparam, func, null, or_, select
from sqlalchemy.orm import InstrumentedAttribute

from db.access.visibility import count_seen
from db.engine.connections import Sessions
from db.engine.statements import cache_statements
from db.models import Best, Certificate, DeviceClass, Job, Target, Task, Trial, Workload
from db.results.evidence import interval_of
from db.source_search import is_called_at
from db.views import SpeedupInterval
from loopwright.codegen.kinds import Values
from tuner.types import TensorInfo

Columns = TypeVarTuple("Columns")

_CHUNK = 5000
_HEXADECIMAL = re.compile("[0-9a-f]+")
_SORTED_BY: dict[str, InstrumentedAttribute[object]] = {
    "name": Best.name,
    "op": Best.op,
    "baseline": Best.baseline_median,
    "best": Best.best_median,
    "speedup": Best.speedup,
    "peak": Best.peak_share,
    "created": Best.created_at,
}


@dataclass(frozen=True, slots=True)
class BestScheduleQuery:
    """Which bests, in which order.

    ``text`` is part of a name, of an op, or of a place where a model calls the function; or the beginning of a
    workload's hash.
    """

    text: str = ""
    target_kind: str | None = None
    device_class_id: str | None = None
    op: str | None = None
    sort: Literal["name", "op", "baseline", "best", "speedup", "peak", "created"] = "created"
    descending: bool = True


@dataclass(frozen=True, slots=True)
class BestSchedule:
    """The certified best of a workload on a device class; ``spread`` and ``peak_share`` are ratios.

    ``regressed``: the best no longer holds, and no better certificate is known. ``sources`` say where the model of that
    job calls the function; None where the viewer does not see the job.
    """

    workload_hash: str
    name: str
    op: str
    args: tuple[TensorInfo, ...]
    target_json: str
    device_class_id: str
    device_model: str
    baseline_median: float
    best_median: float
    speedup: float
    interval: SpeedupInterval
    spread: float
    peak_share: float | None
    is_baseline: bool
    created_at: datetime
    regressed: bool
    certificate_id: str
    trial_id: str
    job_id: str | None
    job_name: str | None
    sources: list[str] | None


@dataclass(frozen=True, slots=True)
class BestScheduleFilters:
    """How many bests there are of each op, and of each device class (id, model, target), the most frequent first."""

    ops: tuple[tuple[str, int], ...]
    device_classes: tuple[tuple[str, str, str, int], ...]


def _filtered(statement: Select[*Columns], query: BestScheduleQuery) -> Select[*Columns]:
    """A statement on bests, of those that the query asks for."""
    if query.text:
        text = query.text.lower()
        called = select(Task.workload_hash).where(is_called_at(text))
        matches = or_(Best.text.contains(text, autoescape=True), Best.workload_hash.in_(called))
        if _HEXADECIMAL.fullmatch(text):
            matches = or_(matches, Best.workload_hash.startswith(text))
        statement = statement.where(matches)
    if query.device_class_id is not None:
        statement = statement.where(Best.device_class_id == query.device_class_id)
    if query.target_kind is not None:
        of_kind = select(DeviceClass.id).join(Target).where(Target.kind == query.target_kind)
        statement = statement.where(Best.device_class_id.in_(of_kind))
    if query.op is not None:
        statement = statement.where(Best.op == query.op)
    return statement


def _order(query: BestScheduleQuery) -> list[UnaryExpression[object]]:
    column: ColumnElement[object] | InstrumentedAttribute[object] = _SORTED_BY[query.sort]
    if query.text:
        # Not the column itself: its index would lead SQLite, which does not guess how few rows hold the text, through
        # all of them in their order, one by one.
        column = func.coalesce(column, null())
    ties = Best.workload_hash, Best.device_class_id
    directed = [key.desc() if query.descending else key.asc() for key in (column, *ties)]
    if query.sort == "peak":
        directed[0] = directed[0].nulls_last()
    return directed


def _keys(query: BestScheduleQuery) -> Select[str, str]:
    """Found by an index alone; what the rows say beside is fetched for this page only."""
    keys = _filtered(select(Best.workload_hash, Best.device_class_id), query).order_by(*_order(query))
    return keys.offset(bindparam("offset", type_=Integer)).limit(bindparam("limit", type_=Integer))


@cache_statements
def _matching(query: BestScheduleQuery) -> Select[str]:
    return _filtered(select(Best.workload_hash), query)


@cache_statements
def _matches(query: BestScheduleQuery) -> Select[int]:
    return _matching(query).with_only_columns(func.count(), maintain_column_froms=True)


@cache_statements
def _page(query: BestScheduleQuery) -> Select[*tuple[Any, ...]]:
    return _rows(_keys(query).subquery(), _order(query))


@cache_statements
def _gainers() -> Select[*tuple[Any, ...]]:
    recent = _keys(BestScheduleQuery()).add_columns(Best.baseline_median - Best.best_median).subquery()
    hash, device_class_id, gain = recent.c
    first = select(hash, device_class_id).order_by(gain.desc(), hash, device_class_id)
    order = (Best.baseline_median - Best.best_median).desc(), Best.workload_hash.asc(), Best.device_class_id.asc()
    return _rows(first.limit(bindparam("most", type_=Integer)).subquery(), order)


def _rows(keys: Subquery, order: Sequence[ColumnElement[Any]]) -> Select[*tuple[Any, ...]]:
    """Select the bests with some keys, in an order."""
    # In the order of the fields of a row; columns, not objects of whole rows: there are hundreds.
    return (
        select(Best.workload_hash, Best.name, Best.op, Workload.args, Target.json, Best.device_class_id)
        .add_columns(DeviceClass.model, Best.baseline_median, Best.best_median, Best.speedup, Certificate.document)
        .add_columns(Best.spread, Best.peak_share, Trial.trace_json.is_(None), Best.created_at)
        .add_columns(Certificate.regressed_at.is_not(None), Best.certificate_id, Trial.id, Job.id, Job.name)
        .add_columns(Task.sources)
        .join(keys, (keys.c.workload_hash == Best.workload_hash) & (keys.c.device_class_id == Best.device_class_id))
        .join(Workload, Workload.hash == Best.workload_hash)
        .join(DeviceClass, DeviceClass.id == Best.device_class_id)
        .join(Target, Target.id == DeviceClass.target_id)
        .join(Certificate, Certificate.id == Best.certificate_id)
        .join(Trial, Trial.id == Certificate.trial_id)
        .outerjoin(Task, Task.id == Trial.task_id)
        .outerjoin(Job, Job.id == Task.job_id)
        .order_by(*order)
    )


def _row(hash: str, name: str, op: str, args: list[tuple[list[int], str, str]], *others: Any) -> BestSchedule:
    target_json, device_class_id, model, baseline, best, speedup, document, *rest = others
    figures = baseline, best, speedup, interval_of(document)
    return BestSchedule(hash, name, op, _tensors(args), target_json, device_class_id, model, *figures, *rest)


def _tensors(args: list[tuple[list[int], str, str]]) -> tuple[TensorInfo, ...]:
    return tuple(TensorInfo(tuple(shape), dtype, Values(values)) for shape, dtype, values in args)


class BestSchedules:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def page(self, query: BestScheduleQuery, offset: int = 0, limit: int = 50) -> tuple[list[BestSchedule], int]:
        """At most `limit` rows from `offset` on, and how many there are in all."""
        with self._sessions.read() as session:
            if query.text:
                # Not `count_seen`: a best that the place in a private job's model leads to is found by few.
                total = session.scalar(_matches(query)) or 0
            else:
                total = count_seen(session, _matching(query), Best.workload_hash)
            if offset >= total:
                return [], total
            found = session.execute(_page(query), {"offset": offset, "limit": limit})
            return [_row(*columns) for columns in found], total

    def gainers(self, newest: int, most: int) -> list[BestSchedule]:
        """Return at most `most` of the `newest` bests: those that save most a call, the greatest first."""
        with self._sessions.read() as session:
            found = session.execute(_gainers(), {"offset": 0, "limit": newest, "most": most})
            return [_row(*columns) for columns in found]

    def all(self, query: BestScheduleQuery) -> Iterator[BestSchedule]:
        """Every row, a few thousand at a time, from one snapshot."""
        with self._sessions.read() as session:
            offset = 0
            while rows := session.execute(_page(query), {"offset": offset, "limit": _CHUNK}).all():
                yield from (_row(*columns) for columns in rows)
                offset += _CHUNK

    def filters(self) -> BestScheduleFilters:
        """Return the values by which the list of best schedules can be filtered."""
        ops = select(Best.op, func.count()).group_by(Best.op).order_by(func.count().desc(), Best.op)
        counted = select(Best.device_class_id, func.count().label("bests")).group_by(Best.device_class_id).subquery()
        classes = (
            select(DeviceClass.id, DeviceClass.model, Target.json, counted.c.bests)
            .join(Target)
            .join(counted, counted.c.device_class_id == DeviceClass.id)
            .order_by(counted.c.bests.desc(), DeviceClass.id)
        )
        with self._sessions.read() as session:
            return BestScheduleFilters(
                tuple((op, bests) for op, bests in session.execute(ops)),
                tuple((id, model, target, bests) for id, model, target, bests in session.execute(classes)),
            )

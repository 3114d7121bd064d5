"""Workloads: the schedulable functions that the database knows."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import LargeBinary, Row, Select, bindparam, func, or_, select
from sqlalchemy.orm import Session, undefer

from db.bests import renew_workload
from db.engine.compression import HEAD_BYTES, size
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.engine.paging import Keyset, Page
from db.engine.statements import cache_statements
from db.errors import NotFound
from db.models import Trial, WorkloadHolder
from db.models import Workload as WorkloadRow
from db.upsert import Insert, insert_new, insert_of
from db.views import WorkloadDetail, WorkloadView
from loopwright.codegen.kinds import Values
from tuner.types import Operation, TensorInfo, Workload

_NEWEST = Keyset("workloads", WorkloadRow.created_at, WorkloadRow.hash, descending=True)

_RECORDS = (
    select(func.count())
    .where(Trial.workload_hash == WorkloadRow.hash, Trial.median.is_not(None))
    .correlate(WorkloadRow)
    .scalar_subquery()
)


_RENEWED = ("family", "name", "module_json", "script", "args", "log_size", "op", "compute_dtype", "flop", "tvm_version")
"""Columns that are replaced where a workload is stale."""


def log_size(shapes: Iterable[Iterable[int]]) -> float:
    """Return the sum of the logarithms of all extents."""
    return sum(math.log(max(extent, 1)) for shape in shapes for extent in shape)


def put_workloads(
    session: Session, workloads: Iterable[Workload], tvm_version: str, now: datetime, *, private_to: str | None = None
) -> None:
    """Store workloads, for everybody to see or only for the user ``private_to``. What everybody sees stays so.

    A stored one is replaced if another TVM version wrote it, or a release without families or operations, or one that
    gave its arguments other values for tests.
    """
    # Sorted, so that two transactions take the row locks in the same order.
    rows = [_row(each, tvm_version) for each in sorted(workloads, key=lambda each: each.hash)]
    stored = {row.hash: row for row in session.execute(_stored(), {"hashes": [row["hash"] for row in rows]})}
    stale = {row["hash"] for row in rows if row["hash"] in stored and _is_stale(stored[row["hash"]], row)}
    shared = private_to is None
    hidden = {workload_hash for workload_hash, row in stored.items() if shared and not row.shared}
    writing = [row for row in rows if row["hash"] not in stored or row["hash"] in stale | hidden]
    if writing:
        statement = _putting(session.get_bind().dialect.name)
        session.connection().execute(statement, [{**row, "created_at": now, "shared": shared} for row in writing])
    for workload_hash in sorted(stale):
        renew_workload(session, workload_hash)
    if private_to is not None:
        holders = [{"workload_hash": row["hash"], "user_name": private_to} for row in rows]
        insert_new(session, WorkloadHolder, holders)


def _row(workload: Workload, tvm_version: str) -> dict[str, Any]:
    return {
        "hash": workload.hash,
        "family": workload.family,
        "name": workload.name,
        "module_json": workload.module_json,
        "script": workload.script,
        "args": [[list(tensor.shape), tensor.dtype, tensor.values] for tensor in workload.args],
        "log_size": log_size(tensor.shape for tensor in workload.args),
        "op": workload.operation.op,
        "compute_dtype": workload.operation.dtype,
        "flop": workload.operation.flop,
        "tvm_version": tvm_version,
    }


def _is_stale(stored: Row[*tuple[Any, ...]], row: Mapping[str, Any]) -> bool:
    other = stored.tvm_version != row["tvm_version"] or stored.family == "" or stored.args != row["args"]
    return other or bool(row["op"] and not stored.op)


@cache_statements
def _stored() -> Select[*tuple[Any, ...]]:
    columns = WorkloadRow.hash, WorkloadRow.tvm_version, WorkloadRow.family, WorkloadRow.args, WorkloadRow.op
    return select(*columns, WorkloadRow.shared).where(WorkloadRow.hash.in_(bindparam("hashes", expanding=True)))


@functools.cache
def _putting(dialect: str) -> Insert:
    """Insert workloads, or renew what they are; one that everybody sees stays so."""
    statement = insert_of(dialect, WorkloadRow)
    renewed = {name: statement.excluded[name] for name in _RENEWED}
    shared = or_(WorkloadRow.shared, statement.excluded["shared"])
    return statement.on_conflict_do_update(index_elements=["hash"], set_={**renewed, "shared": shared})


def _view(row: WorkloadRow, records: int) -> WorkloadView:
    args = tuple(TensorInfo(tuple(shape), dtype, Values(values)) for shape, dtype, values in row.args)
    operation = Operation(row.op, row.compute_dtype, row.flop)
    return WorkloadView(row.hash, row.family, row.name, args, operation, row.tvm_version, row.created_at, records)


def get_workload(session: Session, workload_hash: str) -> WorkloadDetail:
    """Raises `NotFound`."""
    wanted = select(WorkloadRow, _RECORDS).where(WorkloadRow.hash == workload_hash)
    texts = undefer(WorkloadRow.module_json), undefer(WorkloadRow.script)
    found = session.execute(wanted.options(*texts)).one_or_none()
    if found is None:
        raise NotFound("workload", workload_hash)
    row, records = found
    return WorkloadDetail(_view(row, records), row.module_json, row.script)


class Workloads:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @retry_conflicts
    def put(self, workloads: Collection[Workload], tvm_version: str) -> None:
        """Store workloads, as `put_workloads` does."""
        with self._sessions.write() as session:
            put_workloads(session, workloads, tvm_version, self._sessions.now())

    @retry_conflicts
    def import_(self, workloads: Collection[Workload], tvm_version: str, user_name: str) -> None:
        """Store workloads that a user has from elsewhere: new ones for everybody to see.

        Those of private jobs stay hidden from others, and the user sees them from now on.
        """
        with self._sessions.write() as session:
            now = self._sessions.now()
            # In the order in which `put_workloads` takes the row locks.
            for workload in sorted(workloads, key=lambda workload: workload.hash):
                is_shared = session.scalar(select(WorkloadRow.shared).where(WorkloadRow.hash == workload.hash))
                owner = user_name if is_shared is False else None
                put_workloads(session, [workload], tvm_version, now, private_to=owner)

    def get(self, workload_hash: str) -> WorkloadDetail:
        """Raises `NotFound`."""
        with self._sessions.read() as session:
            return get_workload(session, workload_hash)

    def summaries(self, hashes: Collection[str]) -> dict[str, WorkloadView]:
        """Return workloads by hash, without those that there are not."""
        wanted = select(WorkloadRow, _RECORDS).where(WorkloadRow.hash.in_(hashes))
        with self._sessions.read() as session:
            return {row.hash: _view(row, records) for row, records in session.execute(wanted)}

    def is_shared(self, workload_hash: str) -> bool:
        """Return whether everybody sees the workload."""
        with self._sessions.read() as session:
            return bool(session.scalar(select(WorkloadRow.shared).where(WorkloadRow.hash == workload_hash)))

    def module_bytes(self, hashes: Collection[str]) -> dict[str, int]:
        """Return the size of the JSON of each workload's module, by hash, without those that there are not."""
        head = func.substr(WorkloadRow.module_json, 1, HEAD_BYTES, type_=LargeBinary)
        with self._sessions.read() as session:
            rows = session.execute(select(WorkloadRow.hash, head).where(WorkloadRow.hash.in_(hashes)))
            return {workload_hash: size(stored) for workload_hash, stored in rows}

    def modules(self, hashes: Collection[str]) -> dict[str, str]:
        """Return the JSON of each workload's module, by hash, without those that there are not."""
        with self._sessions.read() as session:
            wanted = select(WorkloadRow.hash, WorkloadRow.module_json).where(WorkloadRow.hash.in_(hashes))
            return dict(session.execute(wanted).all())

    def page(self, page_size: int = 50, page_token: str | None = None) -> Page[WorkloadView]:
        """Newest first; raises `InvalidPage`."""
        with self._sessions.read() as session:
            return _NEWEST.page(session, select(WorkloadRow, _RECORDS), _view, page_size, page_token)

"""Records: measured trials, from searches and from imports."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any, Literal

from sqlalchemy import Exists, Select, and_, bindparam, exists, or_, select
from sqlalchemy.orm import Session

from db.devices import get_device_class
from db.engine.columns import digest, new_id
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.engine.paging import Keyset, Page
from db.engine.statements import cache_statements, varied
from db.errors import NotFound
from db.inputs import ImportedCertificate, ImportedRecord
from db.models import Certificate, DeviceClass, ImportedEvidence, SigningKey, Target, Task, Trial, Workload
from db.results.certificates import certificate_of_record
from db.source_search import is_called_at
from db.upsert import insert_new
from db.views import ImportCount, ImportedCertificateView, RecordDetail, RecordView, SignedDocument
from db.workloads import get_workload
from loopwright.codegen import signatures
from loopwright.codegen.kinds import Origin, SignedBy, TrialState
from loopwright.codegen.versions import CODEGEN_VERSION
from tuner.codec import decode
from tuner.types import DeviceState, MeasureCandidate

_MOST_ANCESTORS = 50
"""Of a record. A search has fewer generations, unless data was tampered with. Not tuned."""
_SAME = 1e-6
"""Relative difference of two medians that are one measurement, written as text and read. Not tuned."""
_ORDERS = {
    "newest": Keyset("records-newest", Trial.created_at, Trial.id, descending=True),
    "latency": Keyset("records-latency", Trial.median, Trial.id),
}


def _measured() -> Select[Trial, str, str, str, list[str] | None, bool]:
    """Select measured trials with what `_view` needs of each."""
    certified = exists().where(Certificate.trial_id == Trial.id)
    return (
        select(Trial, Workload.name, Target.json, Task.job_id, Task.sources, certified)
        .join(Workload, Trial.workload_hash == Workload.hash)
        .join(DeviceClass, Trial.device_class_id == DeviceClass.id)
        .join(Target, DeviceClass.target_id == Target.id)
        .outerjoin(Task, Trial.task_id == Task.id)
        .where(Trial.median.is_not(None))
    )


@cache_statements
def _filtered(filters: frozenset[str]) -> Select[Trial, str, str, str, list[str] | None, bool]:
    """Select measured trials of what is given under the names of ``filters``."""
    columns = {"workload_hash": Trial.workload_hash, "device_class_id": Trial.device_class_id, "target_id": Target.id}
    return _measured().where(*(column == bindparam(name) for name, column in columns.items() if name in filters))


def _known(row: Mapping[str, Any]) -> Exists:
    """Return the condition that the ledger has a program as measured: on its device class, or with the same result.

    The result is the same if a machine with the same target had the same median: the export of this service's own.
    """
    of_target = select(DeviceClass.target_id).where(DeviceClass.id == row["device_class_id"]).scalar_subquery()
    classes = select(DeviceClass.id).where(DeviceClass.target_id == of_target)
    near = row["median"] * (1 - _SAME), row["median"] * (1 + _SAME)
    return exists().where(
        Trial.workload_hash == row["workload_hash"],
        Trial.candidate_hash == row["candidate_hash"],
        or_(
            and_(Trial.device_class_id == row["device_class_id"], Trial.median.is_not(None)),
            and_(Trial.device_class_id.in_(classes), Trial.median.between(*near)),
        ),
    )


def _view(
    trial: Trial, name: str, target_json: str, job_id: str | None, sources: list[str] | None, certified: bool
) -> RecordView:
    assert trial.median is not None, "only measured trials are selected"
    return RecordView(
        id=trial.id,
        workload_hash=trial.workload_hash,
        candidate_hash=trial.candidate_hash,
        name=name,
        target_json=target_json,
        device_class_id=trial.device_class_id,
        trace_json=trial.trace_json,
        run_secs=tuple(trial.run_secs or ()),
        median=trial.median,
        origin=trial.origin,
        predicted=trial.predicted,
        parent=trial.parent,
        worker=trial.worker,
        sandbox=trial.sandbox,
        device_state=decode(DeviceState | None, trial.device_state),
        seed=trial.seed,
        tvm_version=trial.tvm_version,
        codegen_version=trial.codegen_version,
        job_id=job_id,
        sources=tuple(sources or ()),
        certified=certified,
        created_at=trial.created_at,
    )


def _imported(session: Session, record_id: str) -> ImportedCertificateView | None:
    row = session.get(ImportedEvidence, record_id)
    if row is None:
        return None
    key_id = signatures.key_id(row.public_key)
    key = session.get(SigningKey, key_id)
    signed_by = SignedBy.OTHER if key is None else SignedBy.SERVICE if key.revoked_at is None else SignedBy.REVOKED
    signed = SignedDocument(row.document, key_id, row.signature)
    return ImportedCertificateView(signed, row.public_key, signed_by, row.created_at)


def _known_import(record: ImportedRecord, candidate_hash: str) -> Select[str]:
    same = Trial.workload_hash == record.workload_hash, Trial.device_class_id == record.device_class_id
    return select(Trial.id).where(*same, Trial.candidate_hash == candidate_hash, Trial.origin == Origin.IMPORT).limit(1)


class Records:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def page(
        self,
        *,
        workload_hash: str | None = None,
        device_class_id: str | None = None,
        target_id: str | None = None,
        search: str = "",
        sort: Literal["newest", "latency"] = "newest",
        page_size: int = 50,
        page_token: str | None = None,
    ) -> Page[RecordView]:
        """Return the records that the filters leave, in the order of `sort`. Raise `InvalidPage`.

        With `search`, those of functions whose name contains it in any case, or that a model calls at a place with it
        in its name, or whose hash begins with it.
        """
        filters = {"workload_hash": workload_hash, "device_class_id": device_class_id, "target_id": target_id}
        facts = {name: value for name, value in filters.items() if value is not None}
        wanted = _filtered(frozenset(facts))
        if search:
            named = Workload.name.icontains(search, autoescape=True)
            begins = Workload.hash.startswith(search.lower(), autoescape=True)
            of_workload = Trial.workload_hash.in_(select(Workload.hash).where(or_(named, begins)))
            called = Trial.workload_hash.in_(select(Task.workload_hash).where(is_called_at(search)))
            wanted = varied(wanted.where(or_(of_workload, called)))
        with self._sessions.read() as session:
            return _ORDERS[sort].page(session, wanted, _view, page_size, page_token, facts)

    def of_task(self, task_id: str) -> list[RecordView]:
        """Return all records of a task by number; none for an unknown one."""
        wanted = _measured().where(Trial.task_id == task_id).order_by(Trial.number)
        with self._sessions.read() as session:
            return [_view(*row) for row in session.execute(wanted)]

    def get(self, record_id: str) -> RecordDetail:
        """Raise `NotFound`, also for a trial that was not measured."""
        with self._sessions.read() as session:
            row = session.execute(_measured().where(Trial.id == record_id)).one_or_none()
            if row is None:
                raise NotFound("record", record_id)
            record = _view(*row)
            return RecordDetail(
                record=record,
                device_class=get_device_class(session, record.device_class_id),
                workload=get_workload(session, record.workload_hash),
                certificate=certificate_of_record(session, record_id),
                imported=_imported(session, record_id),
            )

    def sources(self, record_id: str) -> tuple[str, ...]:
        """Return where the model of a record's job calls the function; nothing where that is not known or not seen."""
        wanted = select(Task.sources).join(Trial, Trial.task_id == Task.id).where(Trial.id == record_id)
        with self._sessions.read() as session:
            return tuple(session.scalar(wanted) or ())

    def ancestors(self, record_id: str) -> list[RecordView]:
        """Return the parent of a record, the parent's parent and so on, as far as they were measured and are stored."""
        found: list[RecordView] = []
        with self._sessions.read() as session:
            trial = session.get(Trial, record_id)
            while trial is not None and trial.parent is not None and len(found) < _MOST_ANCESTORS:
                own_task = Trial.task_id == trial.task_id, Trial.candidate_hash == trial.parent
                row = session.execute(_measured().where(*own_task)).one_or_none()
                trial = None if row is None else row[0]
                if row is not None:
                    found.append(_view(*row))
        return found

    @retry_conflicts
    def import_(self, records: Collection[ImportedRecord]) -> ImportCount:
        """Store measurements made elsewhere, all or none; those that the ledger has as measured are duplicates.

        So are those of this service's own exports. Their workloads and device classes have to be stored before.
        """
        imported = duplicates = 0
        with self._sessions.write() as session:
            # Sorted, so that two imports at once wait for each other's rows in the same order.
            for record in sorted(records, key=lambda record: (record.workload_hash, digest(record.trace_json))):
                row = self._row(record)
                is_new = not session.scalar(select(_known(row))) and insert_new(session, Trial, [row]) == 1
                if record.certificate is not None:
                    trial_id = row["id"] if is_new else session.scalar(_known_import(record, row["candidate_hash"]))
                    self._keep(session, record.certificate, trial_id)
                imported += is_new
                duplicates += not is_new
        return ImportCount(imported, duplicates)

    def _keep(self, session: Session, certificate: ImportedCertificate, trial_id: str | None) -> None:
        """Store the certificate of an imported record, unless it has one; one that was measured here needs none."""
        if trial_id is not None:
            now = self._sessions.now()
            insert_new(session, ImportedEvidence, [{"trial_id": trial_id, "created_at": now, **asdict(certificate)}])

    def _row(self, record: ImportedRecord) -> dict[str, Any]:
        now = self._sessions.now()
        return {
            "id": new_id(),
            "workload_hash": record.workload_hash,
            "device_class_id": record.device_class_id,
            "number": 0,
            "origin": Origin.IMPORT,
            "candidate_hash": MeasureCandidate(record.trace_json, Origin.IMPORT).hash,
            "trace_json": record.trace_json,
            "state": TrialState.MEASURED,
            "run_secs": list(record.run_secs),
            "median": statistics.median(record.run_secs),
            "tvm_version": record.tvm_version,
            "codegen_version": CODEGEN_VERSION,
            "created_at": now,
            "finished_at": now,
        }

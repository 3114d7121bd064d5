"""Certificates, and the best known schedule of each workload."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import Select, bindparam, case, func, or_, select
from sqlalchemy.orm import Session

from db.bests import FASTEST_FIRST, renew_best
from db.engine.columns import new_id
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.engine.paging import MAX_PAGE_SIZE, Keyset, Page
from db.engine.statements import cache_statements
from db.errors import NotFound
from db.leases import own_running_task
from db.models import Best, DeviceClass, Target, Task, Trial
from db.models import Certificate as CertificateRow
from db.results.evidence import document, interval_of, runner_up_of
from db.results.signing_keys import current_signer
from db.views import BestView, CertificateView, SignedDocument
from loopwright.codegen.kinds import TrialState
from tuner.codec import decode, encode
from tuner.types import Certificate, DeviceState, Failure, LibraryTime

_NEWEST = Keyset("bests", Best.created_at, Best.workload_hash, Best.device_class_id, descending=True)


def library_time(stored: dict[str, Any] | None) -> LibraryTime | None:
    """Return what a library took, from how a certificate stores it."""
    return None if stored is None else decode(LibraryTime, stored)


def _rejected_trials(row: CertificateRow) -> dict[str, str]:
    return {key: failure["trial_id"] for key, failure in row.rejected.items() if failure["trial_id"] is not None}


def certificate_view(row: CertificateRow, candidate_hash: str) -> CertificateView:
    value = Certificate(
        candidate_hash=candidate_hash,
        inputs=row.inputs,
        rtol=row.rtol,
        atol=row.atol,
        max_abs_error=row.max_abs_error,
        max_rel_error=row.max_rel_error,
        best_run_secs=tuple(row.best_run_secs),
        baseline_run_secs=tuple(row.baseline_run_secs),
        contenders=row.contenders,
        rejected={key: decode(Failure, failure) for key, failure in row.rejected.items()},
        library=library_time(row.library),
        sandbox=row.sandbox,
        device_state=decode(DeviceState | None, row.device_state),
    )
    return CertificateView(
        id=row.id,
        workload_hash=row.workload_hash,
        device_class_id=row.device_class_id,
        space_hash=row.space_hash,
        trial_id=row.trial_id,
        budget_trials=row.budget_trials,
        baseline_median=row.baseline_median,
        best_median=row.best_median,
        created_at=row.created_at,
        conditions=row.conditions,
        checked_at=row.checked_at,
        regressed_at=row.regressed_at,
        value=value,
        rejected_trials=_rejected_trials(row),
        signed=SignedDocument(row.document, row.key_id, row.signature),
        verdict=_verdict(row),
        interval=interval_of(row.document),
        runner_up=runner_up_of(row.document),
    )


def _verdict(row: CertificateRow) -> SignedDocument | None:
    if row.verdict_document is None or row.verdict_key_id is None or row.verdict_signature is None:
        return None
    return SignedDocument(row.verdict_document, row.verdict_key_id, row.verdict_signature)


def certificate_of_record(session: Session, trial_id: str) -> CertificateView | None:
    """Return the newest certificate of a trial."""
    newest = select(CertificateRow, Trial.candidate_hash).join(Trial).where(CertificateRow.trial_id == trial_id)
    row = session.execute(newest.order_by(CertificateRow.created_at.desc(), CertificateRow.id).limit(1)).one_or_none()
    return None if row is None else certificate_view(*row)


def best_rows() -> Select[CertificateRow, str, str | None, int, str, str]:
    """Select from the table of bests what `best_view` needs of each."""
    return (
        select(CertificateRow, Trial.candidate_hash, Trial.trace_json, Trial.codegen_version, Best.name, Target.json)
        .join(Best, Best.certificate_id == CertificateRow.id)
        .join(Trial, CertificateRow.trial_id == Trial.id)
        .join(DeviceClass, Best.device_class_id == DeviceClass.id)
        .join(Target, DeviceClass.target_id == Target.id)
    )


def _rows_with_sources() -> Select[CertificateRow, str, str | None, int, str, str, list[str] | None]:
    """As `best_rows`, with where the model of the job that found each calls it; None if the viewer sees no such job."""
    return best_rows().add_columns(Task.sources).outerjoin(Task, Task.id == Trial.task_id)


@cache_statements
def _filtered(filters: frozenset[str]) -> Select[CertificateRow, str, str | None, int, str, str, list[str] | None]:
    """Select the bests of what is given under the names of ``filters``."""
    columns = {"workload_hash": Best.workload_hash, "device_class_id": Best.device_class_id, "target_id": Target.id}
    wanted = (column == bindparam(name) for name, column in columns.items() if name in filters)
    return _rows_with_sources().where(*wanted)


def best_view(
    row: CertificateRow,
    candidate_hash: str,
    trace_json: str | None,
    codegen_version: int,
    name: str,
    target_json: str,
    sources: list[str] | None = None,
) -> BestView:
    certificate = certificate_view(row, candidate_hash)
    return BestView(certificate, name, target_json, trace_json, codegen_version, tuple(sources or ()))


def conditions(runtime: str, system: str) -> str:
    """Return the conditions of a timing besides the machine: a device class's runtime, the kernel and the driver."""
    return f"{runtime}, {system}"


class Certificates:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @retry_conflicts
    def store(
        self,
        task_id: str,
        lease_token: str,
        certificate: Certificate,
        budget_trials: int,
        *,
        at_plateau: bool = False,
    ) -> CertificateView:
        """Keep the evidence for a trial of a running task that was allowed `budget_trials` trials.

        Raises `LeaseLost`, `NotFound` if no measured trial of the task has the certificate's candidate, and ValueError
        if the certificate lacks the sandbox or the system of its race.
        """
        if certificate.sandbox is None or certificate.system is None:
            raise ValueError("a certificate is stored with the sandbox and the system of its race")
        with self._sessions.write() as session:
            job, task = own_running_task(session, task_id, lease_token)
            trial = session.scalars(
                select(Trial).where(
                    Trial.task_id == task_id,
                    Trial.candidate_hash == certificate.candidate_hash,
                    Trial.state == TrialState.MEASURED,
                )
            ).one_or_none()
            if trial is None:
                raise NotFound("measured candidate", certificate.candidate_hash)
            device_class = session.get_one(DeviceClass, job.device_class_id)
            certificate_id, signer = new_id(), current_signer(session, self._sessions.now())
            created_at = self._sessions.now()
            text = document(
                certificate,
                id=certificate_id,
                created_at=created_at,
                task=task,
                trial=trial,
                device_class=device_class,
                target=session.get_one(Target, device_class.target_id),
            )
            row = CertificateRow(
                id=certificate_id,
                workload_hash=task.workload_hash,
                device_class_id=job.device_class_id,
                space_hash=job.space_hash,
                trial_id=trial.id,
                inputs=certificate.inputs,
                rtol=certificate.rtol,
                atol=certificate.atol,
                max_abs_error=certificate.max_abs_error,
                max_rel_error=certificate.max_rel_error,
                baseline_run_secs=list(certificate.baseline_run_secs),
                best_run_secs=list(certificate.best_run_secs),
                baseline_median=statistics.median(certificate.baseline_run_secs),
                best_median=statistics.median(certificate.best_run_secs),
                contenders=certificate.contenders,
                rejected=self._rejected(session, task_id, certificate),
                budget_trials=budget_trials,
                at_plateau=at_plateau,
                search_secs=self._search_secs(session, task),
                library=encode(certificate.library),
                sandbox=certificate.sandbox,
                device_state=encode(certificate.device_state),
                conditions=conditions(device_class.runtime, certificate.system),
                created_at=created_at,
                document=text,
                key_id=signer.id,
                signature=signer.sign(text),
            )
            session.add(row)
            session.flush()
            renew_best(session, task.workload_hash, job.device_class_id)
            return certificate_view(row, certificate.candidate_hash)

    def _rejected(self, session: Session, task_id: str, certificate: Certificate) -> dict[str, Any]:
        """Return the column's value: failures by candidate hash, each with the id of its trial if the task has it."""
        trials = select(Trial.candidate_hash, Trial.id).where(
            Trial.task_id == task_id, Trial.candidate_hash.in_(certificate.rejected)
        )
        trial_ids = dict(session.execute(trials).all())
        return {
            candidate_hash: encode(failure) | {"trial_id": trial_ids.get(candidate_hash)}
            for candidate_hash, failure in certificate.rejected.items()
        }

    def _search_secs(self, session: Session, task: Task) -> float:
        """Return the task's share, by trials, of the time since its job began to tune it."""
        mine, all_of_job = session.execute(
            select(func.count(case((Trial.task_id == task.id, 1))), func.count())
            .join(Task, Trial.task_id == Task.id)
            .where(Task.job_id == task.job_id)
        ).one()
        started_at = task.started_at or self._sessions.now()
        return (self._sessions.now() - started_at).total_seconds() * mine / all_of_job

    def known(
        self,
        workload_hash: str,
        device_class_id: str,
        space_hash: str,
        budget_trials: int,
        *,
        or_plateau: bool = False,
    ) -> CertificateView | None:
        """Return the fastest result of a search in this space that was allowed at least `budget_trials` trials.

        With `or_plateau`, the result of a search that ended at its plateau counts, too. Results that no longer hold do
        not count.
        """
        enough = CertificateRow.budget_trials >= budget_trials
        if or_plateau:
            enough = or_(enough, CertificateRow.at_plateau)
        wanted = (
            select(CertificateRow, Trial.candidate_hash)
            .join(Trial)
            .where(
                CertificateRow.workload_hash == workload_hash,
                CertificateRow.device_class_id == device_class_id,
                CertificateRow.space_hash == space_hash,
                CertificateRow.regressed_at.is_(None),
                enough,
            )
            .order_by(*FASTEST_FIRST)
            .limit(1)
        )
        with self._sessions.read() as session:
            row = session.execute(wanted).one_or_none()
        return None if row is None else certificate_view(*row)

    def best(self, workload_hash: str, device_class_id: str) -> BestView | None:
        """Return the fastest certified schedule of a workload on a device class, from any design space."""
        of_class = Best.workload_hash == workload_hash, Best.device_class_id == device_class_id
        wanted = _rows_with_sources().where(*of_class)
        with self._sessions.read() as session:
            row = session.execute(wanted).one_or_none()
        return None if row is None else best_view(*row)

    def workloads_with_bests(self, device_class_id: str | None) -> Iterator[str]:
        """Yield the hash of each workload whose best has a trace, on any device class or on one; in their order.

        Each page of them is a snapshot of its own.
        """
        wanted = (
            select(Best.workload_hash)
            .distinct()
            .join(CertificateRow, Best.certificate_id == CertificateRow.id)
            .join(Trial, CertificateRow.trial_id == Trial.id)
            .where(Trial.trace_json.is_not(None))
        )
        if device_class_id is not None:
            wanted = wanted.where(Best.device_class_id == device_class_id)
        last = ""
        while True:
            later = wanted.where(Best.workload_hash > last).order_by(Best.workload_hash).limit(MAX_PAGE_SIZE)
            with self._sessions.read() as session:
                hashes = session.scalars(later).all()
            yield from hashes
            if len(hashes) < MAX_PAGE_SIZE:
                return
            last = hashes[-1]

    def bests_of(self, hashes: Collection[str], device_class_id: str | None) -> list[BestView]:
        """Return the bests of workloads that have a trace, on all device classes or on one; those of one together."""
        wanted = best_rows().where(Best.workload_hash.in_(hashes), Trial.trace_json.is_not(None))
        if device_class_id is not None:
            wanted = wanted.where(Best.device_class_id == device_class_id)
        with self._sessions.read() as session:
            rows = session.execute(wanted.order_by(Best.workload_hash, Best.device_class_id))
            return [best_view(*row) for row in rows]

    def signed(self, trial_ids: Collection[str]) -> dict[str, SignedDocument]:
        """Return what was signed of the newest certificate of each of these trials, by trial."""
        rows = select(CertificateRow).where(CertificateRow.trial_id.in_(trial_ids)).order_by(CertificateRow.created_at)
        with self._sessions.read() as session:
            found = session.scalars(rows)
            return {row.trial_id: SignedDocument(row.document, row.key_id, row.signature) for row in found}

    def bests(
        self,
        *,
        workload_hash: str | None = None,
        device_class_id: str | None = None,
        target_id: str | None = None,
        page_size: int = 50,
        page_token: str | None = None,
    ) -> Page[BestView]:
        """Return the best of each workload and device class that the filters leave, newest first.

        Raises `InvalidPage`.
        """
        filters = {"workload_hash": workload_hash, "device_class_id": device_class_id, "target_id": target_id}
        facts = {name: value for name, value in filters.items() if value is not None}
        with self._sessions.read() as session:
            return _NEWEST.page(session, _filtered(frozenset(facts)), best_view, page_size, page_token, facts)

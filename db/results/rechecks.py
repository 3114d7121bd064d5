"""Rechecks of bests: which bests are due, and the results."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from sqlalchemy import Select, and_, func, or_, select

from db.access.webhooks import notify
from db.bests import renew_best
from db.devices import device_class_value, of_machine
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.events import recheck_event
from db.leases import own_job
from db.models import Best, Certificate, DeviceClass, Job, Recheck, Target, Task, Trial, Workload
from db.results.certificates import conditions
from db.results.evidence import verdict
from db.results.signing_keys import current_signer
from db.states import WebhookEvent
from db.views import DueRecheck, RecheckView, SignedDocument
from loopwright.codegen.kinds import FINISHED
from tuner.errors import LeaseLost
from tuner.types import DeviceClass as DeviceClassValue

_LAST_RACED = func.coalesce(Certificate.checked_at, Certificate.created_at)


class Rechecks:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def due(
        self, machine: DeviceClassValue, systems: Collection[str], tvm_version: str, days: float, limit: int
    ) -> list[DueRecheck]:
        """Return bests that are due for a recheck on the present machines, those that were raced longest ago first.

        Due are those of such machines that were raced over `days` days ago, or a day ago with a kernel, driver or TVM
        that is none of theirs: `systems` are those they have. Bests of another TVM are left out until their workload
        was stored with this one, which alone can read it. Where the unscheduled program is the best, there is nothing
        to race.
        """
        now = self._sessions.now()
        now_with = sorted(conditions(machine.runtime, system) for system in systems)
        too_old = now - timedelta(days=days)
        elsewhere = Certificate.conditions.not_in(now_with), now - timedelta(days=1) > _LAST_RACED
        wanted = (
            self._bests()
            .where(of_machine(machine))
            .where(or_(DeviceClass.runtime == machine.runtime, Workload.tvm_version == tvm_version))
            .where(or_(too_old > _LAST_RACED, and_(*elsewhere)))
            .order_by(_LAST_RACED, Certificate.id)
            .limit(limit)
        )
        with self._sessions.read() as session:
            rows = session.execute(wanted).all()
        return [
            DueRecheck(row.id, device_class_value(device_class, target_json), _reason(row, now_with, days), shared)
            for row, device_class, target_json, shared in rows
        ]

    def asked(self, workload_hashes: Collection[str], machine: DeviceClassValue) -> list[DueRecheck]:
        """Return the bests of these workloads on such machines, for their target, that a user wants to have raced."""
        wanted = self._bests().where(
            of_machine(machine), Target.json == machine.target_json, Best.workload_hash.in_(workload_hashes)
        )
        with self._sessions.read() as session:
            rows = session.execute(wanted.order_by(Best.workload_hash)).all()
        return [
            DueRecheck(row.id, device_class_value(device_class, target_json), "a user asked", shared)
            for row, device_class, target_json, shared in rows
        ]

    @staticmethod
    def _bests() -> Select[Certificate, DeviceClass, str, bool]:
        return (
            select(Certificate, DeviceClass, Target.json, Workload.shared)
            .join(Best, Best.certificate_id == Certificate.id)
            .join(Trial, Trial.id == Certificate.trial_id)
            .join(Workload, Workload.hash == Best.workload_hash)
            .join(DeviceClass, DeviceClass.id == Best.device_class_id)
            .join(Target, Target.id == DeviceClass.target_id)
            .where(Trial.trace_json.is_not(None))
        )

    def ongoing(self) -> bool:
        """Return whether a job of rechecks is not finished yet."""
        wanted = select(Recheck.job_id).join(Job, Job.id == Recheck.job_id).where(Job.state.not_in(FINISHED)).limit(1)
        with self._sessions.read() as session:
            return session.scalar(wanted) is not None

    def of_job(self, job_id: str) -> list[RecheckView]:
        """Return the rechecks of a job, sorted by name."""
        wanted = (
            select(Recheck, Certificate, Workload.name, Trial.trace_json, Task.sources)
            .join(Certificate, Certificate.id == Recheck.certificate_id)
            .join(Workload, Workload.hash == Certificate.workload_hash)
            .join(Trial, Trial.id == Certificate.trial_id)
            .outerjoin(Task, Task.id == Trial.task_id)
            .where(Recheck.job_id == job_id)
            .order_by(Workload.name, Certificate.id)
        )
        with self._sessions.read() as session:
            return [
                RecheckView(
                    certificate_id=certificate.id,
                    workload_hash=certificate.workload_hash,
                    name=name,
                    sources=tuple(sources or ()),
                    trial_id=certificate.trial_id,
                    trace_json=trace_json or "",
                    best_median=certificate.best_median,
                    baseline_median=certificate.baseline_median,
                    reason=row.reason,
                    result=row.result,
                    signed=_signed(row),
                )
                for row, certificate, name, trace_json, sources in session.execute(wanted)
            ]

    @retry_conflicts
    def store(
        self, job_id: str, lease_token: str, certificate_id: str, result: dict[str, Any], *, holds: bool | None
    ) -> None:
        """Store the result of a race in the form of the wire, sign it, and store whether the certificate holds.

        ``holds`` is None if that is unknown.

        If the certificate does not hold, the next one becomes the best, and webhooks are notified. Raise LeaseLost if
        another run has the job.
        """
        with self._sessions.write() as session:
            if own_job(session, job_id, lease_token) is None:
                raise LeaseLost(f"job {job_id} is no longer under this lease")
            signer, now = current_signer(session, self._sessions.now()), self._sessions.now()
            certificate = session.get_one(Certificate, certificate_id)
            certificate.checked_at = now
            certificate.conditions = result["conditions"] or certificate.conditions
            name = session.get_one(Workload, certificate.workload_hash).name
            recheck_event(session, job_id, certificate.workload_hash, name, result, now)
            if holds is False and certificate.regressed_at is None:
                notify(session, WebhookEvent.BEST_REGRESSED, _facts(job_id, name, certificate) | result, now)
            if holds is not None:
                certificate.regressed_at = None if holds else (certificate.regressed_at or now)
            row, text = session.get_one(Recheck, (job_id, certificate_id)), verdict(certificate, job_id, result)
            row.result = result
            row.document, row.key_id, row.signature = text, signer.id, signer.sign(text)
            certificate.verdict_document = row.document
            certificate.verdict_key_id, certificate.verdict_signature = row.key_id, row.signature
            session.flush()
            renew_best(session, certificate.workload_hash, certificate.device_class_id)


def _signed(row: Recheck) -> SignedDocument | None:
    if row.document is None or row.key_id is None or row.signature is None:
        return None
    return SignedDocument(row.document, row.key_id, row.signature)


def _facts(job_id: str, name: str, certificate: Certificate) -> dict[str, Any]:
    return {
        "job_id": job_id,
        "name": name,
        "workload_hash": certificate.workload_hash,
        "device_class": certificate.device_class_id,
        "certificate_id": certificate.id,
        "certified_best_us": certificate.best_median * 1e6,
    }


def _reason(row: Certificate, now_with: Collection[str], days: float) -> str:
    if row.conditions not in now_with:
        return f"it was raced with {row.conditions}"
    return f"it was raced over {days:g} days ago"

"""Statistics of a workload's trials, for the pages of the workload."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import exists, func, select

from db.engine.connections import Sessions
from db.engine.paging import Keyset, Page
from db.models import Best, Certificate, DeviceClass, Job, Target, Task, Trial
from db.results.certificates import certificate_view
from db.views import CertificateView
from loopwright.codegen.kinds import Origin, Predictor

_OLDEST = Keyset("history", Certificate.created_at, Certificate.id)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A certificate with where it comes from; ``is_best``: the fastest of its device class."""

    certificate: CertificateView
    target_json: str
    device_model: str
    is_baseline: bool
    is_best: bool
    job_id: str | None
    job_name: str | None


@dataclass(frozen=True, slots=True)
class MeasuredTrace:
    """A measured trial that is no baseline, with its trace; ``median`` in seconds."""

    trial_id: str
    trace_json: str
    median: float
    origin: Origin
    certified: bool


@dataclass(frozen=True, slots=True)
class Prediction:
    """A measured trial that a model had selected; those of equal task and time were proposed together."""

    trial_id: str
    job_id: str
    task_id: str
    created_at: datetime
    predicted_by: Predictor | None
    predicted: float
    median: float


class Insight:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def device_class(self, workload_hash: str) -> str | None:
        """Return the device class with the most measured trials of the workload."""
        most = (
            select(Trial.device_class_id)
            .where(Trial.workload_hash == workload_hash, Trial.median.is_not(None))
            .group_by(Trial.device_class_id)
            .order_by(func.count().desc(), Trial.device_class_id)
            .limit(1)
        )
        with self._sessions.read() as session:
            return session.scalar(most)

    def history(
        self,
        workload_hash: str,
        device_class_id: str | None = None,
        page_size: int = 50,
        page_token: str | None = None,
    ) -> Page[HistoryEntry]:
        """Return the certificates of a workload, the oldest first; raises `InvalidPage`."""
        is_best = exists().where(Best.certificate_id == Certificate.id)
        wanted = (
            select(
                Certificate,
                Trial.candidate_hash,
                Target.json,
                DeviceClass.model,
                Trial.trace_json.is_(None),
                is_best,
                Job.id,
                Job.name,
            )
            .join(Trial, Certificate.trial_id == Trial.id)
            .join(DeviceClass, Certificate.device_class_id == DeviceClass.id)
            .join(Target, DeviceClass.target_id == Target.id)
            .outerjoin(Task, Trial.task_id == Task.id)
            .outerjoin(Job, Task.job_id == Job.id)
            .where(Certificate.workload_hash == workload_hash)
        )
        if device_class_id is not None:
            wanted = wanted.where(Certificate.device_class_id == device_class_id)
        with self._sessions.read() as session:
            return _OLDEST.page(session, wanted, _history, page_size, page_token)

    def fastest(self, workload_hash: str, device_class_id: str, limit: int) -> list[MeasuredTrace]:
        """Return the fastest trials of the workload on the device class, baselines aside."""
        certified = exists().where(Certificate.trial_id == Trial.id)
        wanted = (
            select(Trial.id, Trial.trace_json, Trial.median, Trial.origin, certified)
            .where(
                Trial.workload_hash == workload_hash,
                Trial.device_class_id == device_class_id,
                Trial.median.is_not(None),
                Trial.trace_json.is_not(None),
            )
            .order_by(Trial.median, Trial.id)
            .limit(limit)
        )
        with self._sessions.read() as session:
            return [MeasuredTrace(*row) for row in session.execute(wanted)]  # type: ignore[arg-type]

    def predictions(self, workload_hash: str, device_class_id: str, limit: int) -> list[Prediction]:
        """Return the newest `limit` trials of the workload on the device class that a model had selected.

        They come in the order in which they were proposed, those of one model together.
        """
        wanted = (
            select(
                *(Trial.id, Task.job_id, Task.id, Trial.created_at, Trial.predicted_by, Trial.predicted, Trial.median)
            )
            .join(Task, Trial.task_id == Task.id)
            .where(
                Trial.workload_hash == workload_hash,
                Trial.device_class_id == device_class_id,
                Trial.median.is_not(None),
                Trial.predicted.is_not(None),
            )
            .order_by(Trial.created_at.desc(), Trial.task_id, Trial.predicted_by, Trial.number.desc())
            .limit(limit)
        )
        with self._sessions.read() as session:
            return [Prediction(*row) for row in session.execute(wanted)][::-1]  # type: ignore[arg-type]


def _history(
    row: Certificate,
    candidate_hash: str,
    target_json: str,
    model: str,
    is_baseline: bool,
    is_best: bool,
    job_id: str | None,
    job_name: str | None,
) -> HistoryEntry:
    certificate = certificate_view(row, candidate_hash)
    return HistoryEntry(certificate, target_json, model, is_baseline, is_best, job_id, job_name)

"""Base cost models: one a device class, trained anew when its trials have grown by a quarter."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.sql.elements import ColumnElement

from db.engine import Sessions
from db.models import CostModel, Trial
from db.states import TrialState
from db.upsert import insert
from db.views import FeatureSample
from tuner.types import FailureKind

FIRST = 64
"""Trials before the first base model of a device class."""
GROWTH = 1.25
"""A base model is trained anew when there are so many times the trials that it was trained on."""
PER_WORKLOAD = 128
"""Of each workload, the newest: one that was tuned for days does not outweigh the others."""


class CostModels:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def get(self, device_class_id: str, tvm_version: str) -> bytes | None:
        """The base model of the device class, for the features of this TVM version."""
        wanted = select(CostModel.model).where(
            CostModel.device_class_id == device_class_id, CostModel.tvm_version == tvm_version
        )
        with self._sessions.read() as session:
            return session.scalar(wanted)

    def due(self, device_class_id: str, tvm_version: str) -> bool:
        """Whether a base model should be trained now."""
        trained = select(CostModel.samples).where(
            CostModel.device_class_id == device_class_id, CostModel.tvm_version == tvm_version
        )
        per_workload = (
            select(func.count().label("number"))
            .where(*_usable(device_class_id, tvm_version))
            .group_by(Trial.workload_hash)
            .subquery()
        )
        with self._sessions.read() as session:
            before: int = session.scalar(trained) or 0
            counts = session.scalars(select(per_workload.c.number)).all()
        available = sum(min(count, PER_WORKLOAD) for count in counts)
        return bool(available >= max(FIRST, GROWTH * before))

    def samples(self, device_class_id: str, tvm_version: str) -> list[FeatureSample]:
        """The newest trials of each workload that was tuned on the device class, in a fixed order."""
        age = func.row_number().over(
            partition_by=Trial.workload_hash, order_by=(Trial.created_at.desc(), Trial.number.desc(), Trial.id)
        )
        ranked = (
            select(Trial.id, Trial.workload_hash, Trial.features, Trial.median, age.label("age"))
            .where(*_usable(device_class_id, tvm_version))
            .subquery()
        )
        wanted = select(ranked).where(ranked.c.age <= PER_WORKLOAD).order_by(ranked.c.workload_hash, ranked.c.id)
        with self._sessions.read() as session:
            return [FeatureSample(row.workload_hash, row.features, row.median) for row in session.execute(wanted)]

    def put(self, device_class_id: str, tvm_version: str, model: bytes, samples: int, workloads: int) -> None:
        """Store a base model in place of the one before."""
        values = {
            "tvm_version": tvm_version,
            "model": model,
            "samples": samples,
            "workloads": workloads,
            "created_at": self._sessions.now(),
        }
        with self._sessions.write() as session:
            statement = insert(session, CostModel).values(device_class_id=device_class_id, **values)
            session.execute(statement.on_conflict_do_update(index_elements=["device_class_id"], set_=values))


def _usable(device_class_id: str, tvm_version: str) -> list[ColumnElement[bool]]:
    """Finished trials that say something about their program."""
    return [
        Trial.device_class_id == device_class_id,
        Trial.tvm_version == tvm_version,
        Trial.features.is_not(None),
        Trial.state != TrialState.PROPOSED,
        (Trial.failure_kind.is_(None)) | (Trial.failure_kind != FailureKind.DEVICE_LOST),
    ]

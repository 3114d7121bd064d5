"""Base cost models: one for each device class, trained again when its number of trials has grown by a quarter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.models import CostModel, Trial, TrialCount, TrialTally
from db.upsert import insert
from db.views import FeatureSample
from loopwright.codegen.kinds import TrialState
from tuner.types import LOSSES

FIRST = 64
"""Trials before the first base model of a device class."""
GROWTH = 1.25
"""A base model is trained anew when there are so many times the trials that there were when it was trained."""
PER_WORKLOAD = 128
"""Of each workload, the newest: one that was tuned for days does not outweigh the others."""
MOST = 50_000
"""Samples of one model, the newest. XGBoost trains on them for some seconds."""
_READ = 4 * MOST
"""Trials that are looked at for them."""


class CostModels:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def get(self, device_class_id: str, tvm_version: str) -> bytes | None:
        """Return the base model of the device class, for the features of this TVM version."""
        wanted = select(CostModel.model).where(
            CostModel.device_class_id == device_class_id, CostModel.tvm_version == tvm_version
        )
        with self._sessions.read() as session:
            return session.scalar(wanted)

    def available(self, device_class_id: str, tvm_version: str) -> int:
        """Return the number of all samples of the device class, including pruned ones."""
        counted, tallied = (
            select(func.coalesce(func.sum(table.samples), 0)).where(
                table.device_class_id == device_class_id, table.tvm_version == tvm_version
            )
            for table in (TrialCount, TrialTally)
        )
        with self._sessions.read() as session:
            return sum(int(session.scalars(samples).one()) for samples in (counted, tallied))

    def due(self, device_class_id: str, tvm_version: str) -> bool:
        """Return whether a base model should be trained now."""
        trained = select(CostModel.available).where(
            CostModel.device_class_id == device_class_id, CostModel.tvm_version == tvm_version
        )
        with self._sessions.read() as session:
            before = session.scalar(trained) or 0
        return self.available(device_class_id, tvm_version) >= max(FIRST, GROWTH * before)

    def samples(self, device_class_id: str, tvm_version: str) -> list[FeatureSample]:
        """Return the newest trials that are samples of their programs, the newest first.

        At most `MOST`, and at most `PER_WORKLOAD` of one workload.
        """
        with self._sessions.read() as session:
            return [sample for _, sample in newest_samples(session, device_class_id, tvm_version)]

    @retry_conflicts
    def put(
        self, device_class_id: str, tvm_version: str, model: bytes, *, samples: int, available: int, workloads: int
    ) -> None:
        """Store a base model, and replace the earlier one.

        It was trained on ``samples`` of ``workloads``, when there were ``available`` in all.
        """
        values = {
            "tvm_version": tvm_version,
            "model": model,
            "samples": samples,
            "available": available,
            "workloads": workloads,
            "created_at": self._sessions.now(),
        }
        with self._sessions.write() as session:
            statement = insert(session, CostModel).values(device_class_id=device_class_id, **values)
            session.execute(statement.on_conflict_do_update(index_elements=["device_class_id"], set_=values))


def newest_samples(session: Session, device_class_id: str, tvm_version: str) -> Iterator[tuple[str, FeatureSample]]:
    """Yield the samples of a base model, each with the id of its trial; see `CostModels.samples`."""
    newest = (
        select(Trial.id, Trial.workload_hash, Trial.features, Trial.median)
        .where(
            Trial.device_class_id == device_class_id,
            Trial.tvm_version == tvm_version,
            Trial.features.is_not(None),
            Trial.state != TrialState.PROPOSED,
            (Trial.failure_kind.is_(None)) | (Trial.failure_kind.not_in(LOSSES)),
        )
        .order_by(Trial.created_at.desc(), Trial.id.desc())
        .limit(_READ)
        .execution_options(yield_per=5000)
    )
    taken: Counter[str] = Counter()
    for id, workload_hash, features, median in session.execute(newest):
        if taken.total() == MOST:
            return
        if features is not None and taken[workload_hash] < PER_WORKLOAD:
            taken[workload_hash] += 1
            yield id, FeatureSample(workload_hash, features, median)

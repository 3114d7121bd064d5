"""Imported bests that this service's machines have not certified yet."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import exists, func, select

from db.devices import target_id
from db.engine.connections import Sessions
from db.models import OWNER, Best, DeviceClass, ImportedEvidence, Job, Target, Task, Trial, Workload
from loopwright.codegen.kinds import FINISHED
from loopwright.codegen.versions import CODEGEN_VERSION
from tuner.types import DeviceClass as DeviceClassValue

CHUNK = 500
"""Workloads in one query, as of `db.results.lookup`."""


@dataclass(frozen=True, slots=True)
class ImportedSchedule:
    """A record that was imported with a certificate: its id, its trace, and the code generation that this needs."""

    workload_hash: str
    record_id: str
    trace_json: str
    codegen_version: int


class Imports:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def due(self, machine: DeviceClassValue, tvm_version: str, limit: int) -> list[str]:
        """Return the hashes of workloads to certify on such machines, those that were imported first coming first.

        Due are those with a record that came with a certificate, for a target of the same kind, which have no best on
        these machines. What a job of theirs had already, however it ended, is not due again. Private ones never are.
        """
        tried = select(Task.workload_hash).join(Job, Job.id == Task.job_id).where(Job.device_class_id == machine.id)
        known = exists().where(Best.workload_hash == Workload.hash, Best.device_class_id == machine.id)
        kind = json.loads(machine.target_json)["kind"]
        wanted = (
            select(Workload.hash)
            .join(Trial, Trial.workload_hash == Workload.hash)
            .join(ImportedEvidence, ImportedEvidence.trial_id == Trial.id)
            .join(DeviceClass, DeviceClass.id == Trial.device_class_id)
            .join(Target, Target.id == DeviceClass.target_id)
            .where(Workload.shared, Workload.tvm_version == tvm_version, Trial.tvm_version == tvm_version)
            .where(Trial.codegen_version <= CODEGEN_VERSION, Target.kind == kind)
            .where(~known, Workload.hash.not_in(tried))
            .group_by(Workload.hash)
            .order_by(func.min(ImportedEvidence.created_at), Workload.hash)
            .limit(limit)
        )
        with self._sessions.read() as session:
            return list(session.scalars(wanted))

    def schedules(self, workload_hashes: Iterable[str], target_json: str) -> list[ImportedSchedule]:
        """Return the fastest schedule of each workload that was imported with a certificate for this very target."""
        statement = (
            select(Trial.workload_hash, Trial.id, Trial.trace_json, Trial.codegen_version)
            .join(ImportedEvidence, ImportedEvidence.trial_id == Trial.id)
            .join(Workload, Workload.hash == Trial.workload_hash)
            .join(DeviceClass, DeviceClass.id == Trial.device_class_id)
            .where(DeviceClass.target_id == target_id(target_json), Trial.task_id.is_(None))
            .where(Trial.tvm_version == Workload.tvm_version, Trial.codegen_version <= CODEGEN_VERSION)
            .where(Trial.trace_json.is_not(None))
            .order_by(Trial.median, Trial.candidate_hash)
        )
        hashes = list(dict.fromkeys(workload_hashes))
        fastest: dict[str, ImportedSchedule] = {}
        with self._sessions.read() as session:
            for start in range(0, len(hashes), CHUNK):
                rows = session.execute(statement.where(Trial.workload_hash.in_(hashes[start : start + CHUNK])))
                for workload_hash, record_id, trace_json, codegen_version in rows:
                    found = ImportedSchedule(workload_hash, record_id, trace_json or "", codegen_version)
                    fastest.setdefault(workload_hash, found)
        return list(fastest.values())

    def ongoing(self, prefix: str) -> bool:
        """Return whether a job of the owner's, whose idempotency key begins with ``prefix``, is not finished yet."""
        wanted = (
            select(Job.id)
            .where(Job.state.not_in(FINISHED), Job.user_name == OWNER, Job.idempotency_key.startswith(prefix))
            .limit(1)
        )
        with self._sessions.read() as session:
            return session.scalar(wanted) is not None

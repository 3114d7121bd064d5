"""Look up the certified bests of many workloads at once, for `Client.apply` and `Client.compile`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import null, select

from db.bests import FASTEST_FIRST
from db.devices import target_id
from db.engine.connections import Sessions
from db.models import Best, DeviceClass, Workload
from db.models import Certificate as CertificateRow
from db.results.certificates import best_rows, best_view
from db.views import BestView

CHUNK = 500
"""Workloads in one query: a bounded number of bound variables, and of rows in memory. Not tuned."""


@dataclass(frozen=True, slots=True)
class KnownBest:
    """A workload's best; ``module_json`` is the unscheduled workload, or None unless it was asked for."""

    best: BestView
    module_json: str | None


class Lookup:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def bests(
        self,
        workload_hashes: Iterable[str],
        target_json: str,
        *,
        device_class_id: str | None = None,
        modules: bool = False,
    ) -> dict[str, KnownBest]:
        """Return the fastest certified best of each workload that has one, by workload hash.

        The best may be of any device class whose target is ``target_json`` (canonical), or only of the class that is
        given. Each query finds `CHUNK` workloads by the primary key of the table of bests.
        """
        module = Workload.module_json if modules else null()
        statement = best_rows().join(Workload, Best.workload_hash == Workload.hash).add_columns(module)
        statement = statement.where(DeviceClass.target_id == target_id(target_json)).order_by(*FASTEST_FIRST)
        if device_class_id is not None:
            statement = statement.where(Best.device_class_id == device_class_id)
        hashes = list(dict.fromkeys(workload_hashes))
        bests: dict[str, KnownBest] = {}
        with self._sessions.read() as session:
            for start in range(0, len(hashes), CHUNK):
                rows = session.execute(statement.where(Best.workload_hash.in_(hashes[start : start + CHUNK])))
                for *best, module_json in rows:
                    known = KnownBest(best_view(*best), module_json)
                    bests.setdefault(known.best.certificate.workload_hash, known)
        return bests

    def records(self, workload_hashes: Iterable[str], target_json: str) -> dict[str, str]:
        """Return the id of the record that each of `bests` is, by workload hash. Reads no certificate."""
        statement = (
            select(Best.workload_hash, CertificateRow.trial_id)
            .join(CertificateRow, Best.certificate_id == CertificateRow.id)
            .join(DeviceClass, Best.device_class_id == DeviceClass.id)
            .where(DeviceClass.target_id == target_id(target_json))
            .order_by(*FASTEST_FIRST)
        )
        hashes = list(dict.fromkeys(workload_hashes))
        records: dict[str, str] = {}
        with self._sessions.read() as session:
            for start in range(0, len(hashes), CHUNK):
                for each, record_id in session.execute(
                    statement.where(Best.workload_hash.in_(hashes[start : start + CHUNK]))
                ):
                    records.setdefault(each, record_id)
        return records

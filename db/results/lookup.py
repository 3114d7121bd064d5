"""Look up the certified bests of many workloads at once, for `Client.apply` and `Client.compile`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVarTuple

from sqlalchemy import Row, Select, bindparam, null, select

from db.bests import FASTEST_FIRST
from db.devices import target_id
from db.engine.connections import Sessions
from db.engine.statements import cache_statements
from db.models import Best, DeviceClass, Workload
from db.models import Certificate as CertificateRow
from db.results.certificates import best_rows, best_view
from db.views import BestView

Columns = TypeVarTuple("Columns")

CHUNK = 500
"""Workloads in one query: a bounded number of bound variables, and of rows in memory. Not tuned."""


@dataclass(frozen=True, slots=True)
class KnownBest:
    """A workload's best; ``module_json`` is the unscheduled workload, or None unless it was asked for."""

    best: BestView
    module_json: str | None


@dataclass(frozen=True, slots=True)
class BestKey:
    """What a best is kept under by whoever has read it: all of it that may change."""

    certificate_id: str
    name: str
    checked_at: datetime | None
    regressed_at: datetime | None
    signature: str
    verdict_signature: str | None

    @staticmethod
    def of(best: BestView) -> BestKey:
        certificate = best.certificate
        verdict = None if certificate.verdict is None else certificate.verdict.signature
        dates = certificate.checked_at, certificate.regressed_at
        return BestKey(certificate.id, best.name, *dates, certificate.signed.signature, verdict)


@cache_statements
def _of_workloads(*, modules: bool, of_class: bool) -> Select[*tuple[Any, ...]]:
    module = Workload.module_json if modules else null()
    rows = best_rows().join(Workload, Best.workload_hash == Workload.hash).add_columns(module)
    return _limited(rows, of_class=of_class)


@cache_statements
def _keys(*, of_class: bool) -> Select[*tuple[Any, ...]]:
    dates = CertificateRow.checked_at, CertificateRow.regressed_at
    signatures = CertificateRow.signature, CertificateRow.verdict_signature
    rows = (
        select(Best.workload_hash, Best.certificate_id, Best.name, *dates, *signatures)
        .join(CertificateRow, Best.certificate_id == CertificateRow.id)
        .join(DeviceClass, Best.device_class_id == DeviceClass.id)
    )
    return _limited(rows, of_class=of_class)


@cache_statements
def _records() -> Select[str, str]:
    rows = (
        select(Best.workload_hash, CertificateRow.trial_id)
        .join(CertificateRow, Best.certificate_id == CertificateRow.id)
        .join(DeviceClass, Best.device_class_id == DeviceClass.id)
    )
    return _limited(rows, of_class=False)


def _limited(rows: Select[*Columns], *, of_class: bool) -> Select[*Columns]:
    """Return the rows of bests of some workloads for a target, or of one class with it, the fastest first."""
    rows = rows.where(
        DeviceClass.target_id == bindparam("target_id"), Best.workload_hash.in_(bindparam("hashes", expanding=True))
    )
    if of_class:
        rows = rows.where(Best.device_class_id == bindparam("device_class_id"))
    return rows.order_by(*FASTEST_FIRST)


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
        statement = _of_workloads(modules=modules, of_class=device_class_id is not None)
        bests: dict[str, KnownBest] = {}
        for *best, module_json in self._rows(statement, workload_hashes, target_json, device_class_id):
            known = KnownBest(best_view(*best), module_json)
            bests.setdefault(known.best.certificate.workload_hash, known)
        return bests

    def keys(
        self, workload_hashes: Iterable[str], target_json: str, *, device_class_id: str | None = None
    ) -> dict[str, BestKey]:
        """Return what each of `bests` is kept under, by workload hash. Reads little of it."""
        statement = _keys(of_class=device_class_id is not None)
        keys: dict[str, BestKey] = {}
        for each, *key in self._rows(statement, workload_hashes, target_json, device_class_id):
            keys.setdefault(each, BestKey(*key))
        return keys

    def records(self, workload_hashes: Iterable[str], target_json: str) -> dict[str, str]:
        """Return the id of the record that each of `bests` is, by workload hash. Reads no certificate."""
        records: dict[str, str] = {}
        for each, record_id in self._rows(_records(), workload_hashes, target_json, None):
            records.setdefault(each, record_id)
        return records

    def _rows(
        self,
        statement: Select[*tuple[Any, ...]],
        workload_hashes: Iterable[str],
        target_json: str,
        device_class_id: str | None,
    ) -> Iterator[Row[*tuple[Any, ...]]]:
        facts = {"target_id": target_id(target_json), "device_class_id": device_class_id}
        hashes = list(dict.fromkeys(workload_hashes))
        with self._sessions.read() as session:
            for start in range(0, len(hashes), CHUNK):
                yield from session.execute(statement, {"hashes": hashes[start : start + CHUNK], **facts})

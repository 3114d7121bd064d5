"""The table of bests: each row is renewed in the transaction that changes what it copies."""

from __future__ import annotations

from sqlalchemy import case, select, update
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import ColumnElement

from db.models import Best, DeviceClass, Workload
from db.models import Certificate as CertificateRow
from db.upsert import insert
from tuner.types import speedup, spread

FASTEST_FIRST = (
    CertificateRow.regressed_at.is_not(None),
    CertificateRow.best_median,
    CertificateRow.created_at.desc(),
    CertificateRow.id,
)
"""Those that are known to say too much come last."""


def renew_best(session: Session, workload_hash: str, device_class_id: str) -> None:
    """Renew the row of the fastest certificate that holds, or, if none does, of the fastest.

    There has to be one.
    """
    fastest = session.scalars(
        select(CertificateRow)
        .where(CertificateRow.workload_hash == workload_hash, CertificateRow.device_class_id == device_class_id)
        .order_by(*FASTEST_FIRST)
        .limit(1)
    ).one()
    workload = session.get_one(Workload, workload_hash)
    values = {
        "certificate_id": fastest.id,
        "name": workload.name,
        "op": workload.op,
        "text": f"{workload.name} {workload.op}".strip().lower(),
        "baseline_median": fastest.baseline_median,
        "best_median": fastest.best_median,
        "speedup": speedup(fastest.baseline_run_secs, fastest.best_run_secs),
        "spread": spread(fastest.best_run_secs),
        "created_at": fastest.created_at,
    }
    key = {"workload_hash": workload_hash, "device_class_id": device_class_id}
    statement = insert(session, Best).values(**key, **values)
    session.execute(statement.on_conflict_do_update(index_elements=list(key), set_=values))
    _renew_shares(session, Best.workload_hash == workload_hash, Best.device_class_id == device_class_id)


def renew_workload(session: Session, workload_hash: str) -> None:
    """Renew the rows of a workload whose name or operation may have changed."""
    classes = session.scalars(
        select(Best.device_class_id).where(Best.workload_hash == workload_hash).order_by(Best.device_class_id)
    )
    for device_class_id in classes.all():
        renew_best(session, workload_hash, device_class_id)


def renew_peaks(session: Session, device_class_id: str) -> None:
    """Renew the rows of a device class whose peaks were measured."""
    of_class = Best.device_class_id == device_class_id
    # In the order in which everyone locks them.
    session.execute(select(Best.workload_hash).where(of_class).order_by(Best.workload_hash).with_for_update())
    _renew_shares(session, of_class)


def _renew_shares(session: Session, *which: ColumnElement[bool]) -> None:
    """Set the share of the device's peak that each best reaches, if both are known and of the same type."""
    share = (
        select(case((Workload.compute_dtype == DeviceClass.peak_dtype, Workload.flop / DeviceClass.peak_flops)))
        .where(Workload.hash == Best.workload_hash, DeviceClass.id == Best.device_class_id)
        .correlate(Best)
        .scalar_subquery()
    )
    session.execute(update(Best).where(*which).values(peak_share=share / Best.best_median))

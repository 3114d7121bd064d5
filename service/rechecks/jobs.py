"""The jobs that race bests again: one at a time, with a lower priority than users' jobs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from db import Database
from db.engine.columns import digest
from db.errors import QuotaExceeded
from db.inputs import LAST, NewJob
from db.models import OWNER
from db.views import DueRecheck, JobView
from loopwright.codegen.versions import TVM_VERSION
from tuner.budget import Budget
from tuner.types import DeviceClass

_AT_A_TIME = 20
"""Bests of one job: some seconds each."""

log = logging.getLogger("loopwright.rechecks")


def submit_due(database: Database, machines: Iterable[tuple[DeviceClass, str]], days: float) -> JobView | None:
    """Store a job for bests that are due on the present machines, unless there is one already. Return the job.

    ``machines`` has the device class of each, and its system as certificates name it.
    """
    if database.rechecks.ongoing():
        return None
    systems: dict[DeviceClass, set[str]] = {}
    for device_class, system in machines:
        systems.setdefault(device_class, set()).add(system)
    for machine, kinds in systems.items():
        due = database.rechecks.due(machine, kinds, TVM_VERSION, days, _AT_A_TIME)
        if due:
            # Two controllers may be here at once.
            key = digest("recheck", datetime.now(UTC).date().isoformat(), *(each.certificate_id for each in due))
            try:
                return submit(database, due, machine, user_name=OWNER, priority=LAST, idempotency_key=key)
            except QuotaExceeded as error:
                log.warning("bests are not raced again: %s", error)
    return None


def submit(
    database: Database,
    due: Sequence[DueRecheck],
    machine: DeviceClass,
    *,
    user_name: str,
    priority: int = 0,
    idempotency_key: str | None = None,
) -> JobView:
    """Store a job that races the bests again that have the target of the first best. Raise QuotaExceeded."""
    target = due[0].device_class.target_json
    chosen = [each for each in due if each.device_class.target_json == target]
    new = NewJob(
        name="recheck of a best" if len(chosen) == 1 else f"recheck of {len(chosen)} bests",
        module_json="",
        device_class=replace(machine, target_json=target),
        budget=Budget(max_trials=1),
        priority=priority,
        user_name=user_name,
        # Its events name what it races.
        private=not all(each.shared for each in chosen),
        idempotency_key=idempotency_key,
        request_digest=idempotency_key,
        rechecks=tuple((each.certificate_id, each.reason) for each in chosen),
    )
    return database.jobs.create(new, [], TVM_VERSION)

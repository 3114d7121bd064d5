"""The jobs that certify imported bests on this service's own machines, in idle time."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from db import Database
from db.engine.columns import digest
from db.errors import QuotaExceeded
from db.inputs import LAST, NewJob
from db.models import OWNER
from db.views import JobView
from loopwright.codegen import labels
from loopwright.codegen.versions import TVM_VERSION
from service.gates.race import stored_workload
from tuner.budget import Budget
from tuner.types import DeviceClass, TaskSpec

_AT_A_TIME = 20
"""Jobs, of one function each: some seconds each."""
_TRIALS = 8
"""Of a function: as many imported schedules as a search takes (`Trials.known`)."""
_KEY = "certify-import-"
"""How the idempotency keys of these jobs begin."""

log = logging.getLogger("loopwright.rechecks")


def submit_due(database: Database, machines: Iterable[DeviceClass]) -> list[JobView]:
    """Store jobs for functions with imported bests that no job has tried on these machines, unless there are some.

    A job is like one that a user submits for the function, with few trials: it tries the imported schedules first, and
    certifies the fastest or the baseline. Return the jobs.
    """
    if database.imports.ongoing(_KEY):
        return []
    jobs: list[JobView] = []
    for machine in dict.fromkeys(machines):
        for workload_hash in database.imports.due(machine, TVM_VERSION, _AT_A_TIME - len(jobs)):
            try:
                jobs.append(_submit(database, workload_hash, machine))
            except QuotaExceeded as error:
                log.warning("imported bests are not certified: %s", error)
                return jobs
    return jobs


def _submit(database: Database, workload_hash: str, machine: DeviceClass) -> JobView:
    workload = stored_workload(database, workload_hash)
    # Two controllers may be here at once.
    key = _KEY + digest(workload_hash, machine.id)
    new = NewJob(
        name=f"imported {workload.operation.op or 'function'} {workload_hash[:8]}"[: labels.LONGEST],
        module_json=workload.module_json,
        device_class=machine,
        budget=Budget(max_trials=_TRIALS),
        priority=LAST,
        user_name=OWNER,
        idempotency_key=key,
        request_digest=key,
    )
    return database.jobs.create(new, [TaskSpec(workload, 1)], TVM_VERSION)

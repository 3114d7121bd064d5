"""Tasks that their job left without a certificate, as its time was over: jobs of the service certify them later."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from db import Database
from db.engine.columns import digest
from db.errors import QuotaExceeded
from db.inputs import LAST, NewJob
from db.jobs.left import NO_TIME
from db.views import ClaimedJob, TaskView
from loopwright.codegen import labels
from loopwright.codegen.versions import TVM_VERSION
from service.gates.race import stored_workload
from tuner.budget import Budget
from tuner.types import TaskSpec

_TRIALS = 8
"""Of a function: as many known schedules as a search takes (`Trials.known`)."""

log = logging.getLogger("loopwright.job_runner")


def of(tasks: Sequence[TaskView]) -> list[TaskView]:
    """Return those of some tasks that were left without a certificate."""
    return [task for task in tasks if task.error == NO_TIME]


def submit(database: Database, claimed: ClaimedJob, tasks: Sequence[TaskView]) -> None:
    """Store a job with the lowest priority for each of these tasks: it tries the fastest schedules that are known.

    It searches in the space of the claimed job, so that its certificate is an answer to the task (`db.jobs.left`).
    """
    job = claimed.job
    machine = database.devices.get(job.device_class_id)
    for task in tasks:
        workload = stored_workload(database, task.workload_hash)
        key = "certify-later-" + digest(job.id, task.workload_hash)
        new = NewJob(
            name=f"{task.name} of {job.name}"[: labels.LONGEST],
            module_json=workload.module_json,
            space_json=claimed.inputs.space_json,
            device_class=machine,
            budget=Budget(max_trials=_TRIALS),
            priority=LAST,
            user_name=job.user_name,
            private=job.private,
            labels=job.labels,
            idempotency_key=key,
            request_digest=key,
        )
        try:
            database.jobs.create(new, [TaskSpec(workload, 1)], TVM_VERSION)
        except QuotaExceeded as error:
            log.warning("functions of job %s are not certified later: %s", job.id, error)
            return

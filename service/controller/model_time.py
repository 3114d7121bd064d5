"""The whole model of a job, timed on the fleet as one program once all of its functions have their bests."""

from __future__ import annotations

import json
import statistics

from db import Database
from db.views import ClaimedJob
from service.controller.claimed_tasks import ClaimedTasks
from tuner.errors import LeaseLost
from tuner.ports import Meanwhile
from tuner.types import Failure
from workers.messages import ModelProgram
from workers.ray.fleet import RayFleet


def store(database: Database, claimed: ClaimedJob, tasks: ClaimedTasks, fleet: RayFleet, meanwhile: Meanwhile) -> None:
    """Time the model and store what one run took; a note of the job says why, if it could not be timed.

    Models of one function, for several shapes or for GPUs are not timed. Raises LeaseLost, and what ``meanwhile``
    raises.
    """
    job, inputs = claimed.job, claimed.inputs
    if len(tasks.tasks) < 2 or not tasks.succeeded or inputs.shapes is not None:
        return
    if json.loads(job.target_json)["kind"] != "llvm":
        return
    traces = {
        task.workload_hash: database.records.get(task.record_id).record.trace_json
        for task in database.tasks.of_job(job.id)
        if task.record_id is not None
    }
    database.jobs.set_activity(job.id, claimed.lease_token, "timing the whole model")
    result = fleet.time_model(ModelProgram(inputs.module_json, job.target_json, traces), meanwhile)
    reason = result.message if isinstance(result, Failure) else result.reason
    if isinstance(result, Failure) or not result.run_secs:
        stored = database.jobs.add_note(job.id, claimed.lease_token, f"not timed as one program: {reason}")
    else:
        stored = database.jobs.store_model_time(job.id, claimed.lease_token, statistics.median(result.run_secs))
    if not stored:
        raise LeaseLost(f"job {job.id} is no longer under this lease")

"""The whole model of a job, timed on the fleet as one program once all of its functions have their bests."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable

from db import Database
from db.views import ClaimedJob, JobView, ModelTime, SpeedupInterval
from service.controller.claimed_tasks import ClaimedTasks
from tuner.errors import LeaseLost
from tuner.ports import Meanwhile
from tuner.races.grade import graded
from tuner.types import Failure
from workers.messages import ModelProgram, ModelTimes
from workers.ray.fleet import RayFleet

_UNTUNED_SECONDS = 30.0
"""Most of the time for the model without schedules, which nobody will run. Not tuned."""
_CALLS, _LOOPS_SECONDS = 8, 4.0
"""Of it, at least, with those that do not count; and what all loops of a quick model take."""


class _TimeIsUp(Exception):
    """The job has used its time."""


def store(
    database: Database,
    claimed: ClaimedJob,
    tasks: ClaimedTasks,
    fleet: RayFleet,
    meanwhile: Meanwhile,
    *,
    is_over: Callable[[], bool],
) -> None:
    """Time the model and store what one run took; a note of the job says why, if it could not be timed.

    Models of one function, for several shapes or for GPUs are not timed. The timing ends when ``is_over`` says that the
    job has no time left. Raises LeaseLost, and what ``meanwhile`` raises.
    """
    job, inputs = claimed.job, claimed.inputs
    if len(tasks.tasks) < 2 or not tasks.succeeded or inputs.shapes is not None:
        return
    if json.loads(job.target_json)["kind"] != "llvm":
        return
    views = database.tasks.of_job(job.id)
    traces = {
        task.workload_hash: database.records.get(task.record_id).record.trace_json
        for task in views
        if task.record_id is not None
    }
    untuned = math.fsum(task.weight * (task.baseline_secs or 0.0) for task in views)
    seconds = _untuned_build_seconds(database.jobs.get(job.id), untuned)
    database.jobs.set_activity(job.id, claimed.lease_token, "timing the whole model")

    def within_time() -> None:
        meanwhile()
        if is_over():
            raise _TimeIsUp

    result: ModelTimes | Failure
    try:
        within_time()
        program = ModelProgram(inputs.module_json, job.target_json, traces, seconds)
        result = fleet.time_model(program, within_time)
    except _TimeIsUp:
        fleet.abandon()
        result = ModelTimes((), "the time of the job was over")
    reason = result.message if isinstance(result, Failure) else result.reason
    if isinstance(result, Failure) or not result.run_secs:
        stored = database.jobs.add_note(job.id, claimed.lease_token, f"not timed as one program: {reason}")
    else:
        stored = database.jobs.store_model_time(job.id, claimed.lease_token, _summary(result))
    if not stored:
        raise LeaseLost(f"job {job.id} is no longer under this lease")


def _untuned_build_seconds(job: JobView, untuned: float) -> float:
    """Return the seconds that the job has left to build the model with and without schedules.

    ``untuned`` is what a run without them takes.
    """
    limit = job.budget.max_seconds
    left = _UNTUNED_SECONDS if limit is None else min(_UNTUNED_SECONDS, limit - job.elapsed_s)
    return max(0.0, left - max(_CALLS * untuned, _LOOPS_SECONDS))


def _summary(times: ModelTimes) -> ModelTime:
    seconds = statistics.median(times.run_secs)
    if not times.untuned_secs:
        return ModelTime(seconds)
    interval, grade = graded(times.untuned_secs, times.run_secs)
    high = None if math.isinf(interval.high) else interval.high
    speedup = SpeedupInterval(interval.value, interval.low, high, grade)
    return ModelTime(seconds, statistics.median(times.untuned_secs), speedup)

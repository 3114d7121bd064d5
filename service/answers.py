"""Answering tasks from what the database already knows."""

from __future__ import annotations

from db import Database
from db.views import FINISHED, AnsweredFrom, ClaimedJob, TaskView
from service.ledger import budget_per_task


def open_tasks(database: Database, claimed: ClaimedJob) -> list[TaskView]:
    return [task for task in database.tasks.of_job(claimed.job.id) if task.state not in FINISHED]


def answer_known(database: Database, claimed: ClaimedJob, task: TaskView, tasks: int, source: AnsweredFrom) -> bool:
    """End a task with a certificate from a search that was allowed at least as much; False where there is none.

    A job with ``force`` searches anew, and so takes only answers of the very search that it joined.
    """
    job = claimed.job
    if job.force and source == "database":
        return False
    known = database.certificates.known(
        task.workload_hash, job.device_class_id, job.space_hash, budget_per_task(job.max_trials, tasks)
    )
    if known is None:
        return False
    database.tasks.answer(task.id, claimed.lease_token, known.id, source)
    return True


def finish(database: Database, claimed: ClaimedJob) -> None:
    """End a job whose tasks have all ended: failed if any of them is."""
    failed = [task for task in database.tasks.of_job(claimed.job.id) if task.state == "failed"]
    if failed:
        reasons = "; ".join(f"{task.name}: {task.error}" for task in failed)
        total = len(database.tasks.of_job(claimed.job.id))
        database.jobs.finish(
            claimed.job.id, claimed.lease_token, "failed", f"{len(failed)} of {total} tasks have no result. {reasons}"
        )
    else:
        database.jobs.finish(claimed.job.id, claimed.lease_token, "succeeded")

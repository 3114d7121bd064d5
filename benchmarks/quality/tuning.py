"""The tuning step of a case: a job as a user submits it, and what the service says of it afterwards."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.quality import shared
from benchmarks.quality.cases.case import Case, Kind
from benchmarks.quality.service import Service
from benchmarks.quality.settings import Settings
from benchmarks.runner import conditions
from loopwright.jobs.job import Job


def tuned(case: Case, settings: Settings, service: Service) -> dict[str, Any]:
    """Tune a case anew, and return its line: seconds, tasks with certified times, and the measured trials in order.

    Raises:
        RuntimeError: The job failed.
    """
    model, _ = shared.of(case, settings.shared).program()
    is_model = case.kind is Kind.MODEL
    max_trials = settings.model_trials if is_model else settings.trials
    max_seconds = settings.model_seconds if is_model else None
    with service.client() as client:
        started = time.monotonic()
        job = client.submit(model, max_trials=max_trials, max_seconds=max_seconds, name=case.name, force=True).wait(
            progress=False
        )
        seconds = time.monotonic() - started
        if job.state not in ("succeeded", "partly"):
            raise RuntimeError(f"the job of {case.name} {job.state}: {job.error}")
        return {
            "kind": "tuned",
            "case": case.name,
            "budget": {"max_trials": max_trials, "max_seconds": max_seconds},
            "seconds": seconds,
            **outcome(job),
            "history": _history(job),
            "conditions": conditions(settings.threads),
        }


def outcome(job: Job) -> dict[str, Any]:
    """Return the trials, notes and tasks of a job, as they are kept."""
    return {
        "trials": job.progress.trials,
        "failed": job.progress.failed,
        "notes": job.info.notes,
        "tasks": [
            {
                "workload": task.workload_hash,
                "name": task.name,
                "weight": task.weight,
                "trials": task.trials,
                "baseline_us": task.baseline_us,
                "best_us": task.best_us,
                "certified": task.certified,
            }
            for task in job.tasks
        ],
    }


def _history(job: Job) -> list[tuple[str, int, float | None]]:
    """Return (workload, number in its task, microseconds or None) of the finished trials, in the order they finished.

    Number 0 is the baseline.
    """
    finished = [trial for trial in job.trials() if trial.finished_at is not None]
    finished.sort(key=lambda trial: trial.finished_at.timestamp() if trial.finished_at else 0.0)
    return [(trial.workload_hash, trial.number, trial.median_us) for trial in finished]

"""Jobs through the SDK."""

from __future__ import annotations

from loopwright import Job
from tests.support.service_client import JOB_SECONDS


def tuned(job: Job) -> Job:
    """Wait for a job and see it succeed, every task with a certified best."""
    job.wait(progress=False, timeout=JOB_SECONDS)
    assert job.state == "succeeded", job.error
    assert all(task.certified for task in job.tasks)
    return job

"""Closed sets that the database stores as text. A state that nothing writes is not listed."""

from __future__ import annotations

import enum
from typing import Literal

from loopwright.codegen.kinds import JobState


class EventType(enum.StrEnum):
    JOB = "job"
    TASK = "task"
    TRIAL = "trial"
    RECHECK = "recheck"


class LeaseLoss(enum.StrEnum):
    """How the lease of a running job was lost."""

    EXPIRED = "expired"
    """It was not renewed in time: who had it has died, or was held up."""
    DIED = "died"
    """The loop of the job died, and its controller gave the lease back."""


class JobSort(enum.StrEnum):
    """What lists of jobs are sorted by."""

    CREATED = "created"
    NAME = "name"
    GAIN = "gain"
    """The time that one run of the tuned model saves; 0 until the job has succeeded."""


class Scope(enum.StrEnum):
    """The rights of a user or a token; each scope includes the previous ones."""

    READ = "read"
    SUBMIT = "submit"
    ADMIN = "admin"

    def includes(self, other: Scope) -> bool:
        order = list(Scope)
        return order.index(other) <= order.index(self)


class WebhookEvent(enum.StrEnum):
    """The events that are sent to webhooks."""

    JOB_FINISHED = "job.finished"
    BEST_REGRESSED = "best.regressed"
    WORKER_QUARANTINED = "worker.quarantined"
    WORKER_LOST = "worker.lost"


FinalState = Literal[JobState.SUCCEEDED, JobState.PARTLY, JobState.FAILED, JobState.CANCELLED]

"""Closed sets that the database stores as text. A state that nothing writes is not listed."""

from __future__ import annotations

import enum
from typing import Literal


class JobState(enum.StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskState(enum.StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    JOINED = "joined"
    """Another job is tuning the same; its answer is this task's, too."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TrialState(enum.StrEnum):
    PROPOSED = "proposed"
    MEASURED = "measured"
    FAILED = "failed"


class AnsweredFrom(enum.StrEnum):
    """Where the result of a task came from."""

    SEARCH = "search"
    DATABASE = "database"
    JOINED = "joined"


class EventType(enum.StrEnum):
    JOB = "job"
    TASK = "task"
    TRIAL = "trial"


FinalState = Literal[JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED]

FINISHED: frozenset[str] = frozenset({"succeeded", "failed", "cancelled"})
"""States that a job or a task never leaves."""

"""Loopwright: submit tensor programs for tuning, and use the fastest schedules found.

Importing this is light: TVM is imported by the calls that work on programs, when they are made.
"""

from importlib.metadata import version

from loopwright.best import Best
from loopwright.client import Client
from loopwright.compile import ApplyReport
from loopwright.errors import (
    Conflict,
    CouldNotReach,
    InvalidRequest,
    LoopwrightError,
    NotFound,
    ServiceError,
    ServiceUnavailable,
    TooManyRequests,
    TvmUnavailable,
    Unauthorized,
    UnexpectedAnswer,
    UnsupportedModel,
    WaitTimedOut,
)
from loopwright.explain import SpaceDescription, explain
from loopwright.job import Job, JobEvent

__version__ = version("loopwright")

__all__ = [
    "ApplyReport",
    "Best",
    "Client",
    "Conflict",
    "CouldNotReach",
    "InvalidRequest",
    "Job",
    "JobEvent",
    "LoopwrightError",
    "NotFound",
    "ServiceError",
    "ServiceUnavailable",
    "SpaceDescription",
    "TooManyRequests",
    "TvmUnavailable",
    "Unauthorized",
    "UnexpectedAnswer",
    "UnsupportedModel",
    "WaitTimedOut",
    "__version__",
    "explain",
]

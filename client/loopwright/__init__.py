"""Loopwright: submit tensor programs for tuning, and use the fastest schedules found.

Importing this package is light: each name below is imported when it is first used, so that a process which needs
`loopwright.codegen` alone loads neither the HTTP client nor the schemas. TVM is imported by the calls that work on
programs, when they are made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from loopwright.version import VERSION as __version__

if TYPE_CHECKING:
    from loopwright.best import Best
    from loopwright.check_result import CheckResult
    from loopwright.client import Client
    from loopwright.comparison import Comparison
    from loopwright.errors import (
        CheckFailed,
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
        UnsupportedVersion,
        WaitTimedOut,
    )
    from loopwright.exporting import export_library
    from loopwright.job import Job, JobEvent
    from loopwright.job_group import JobGroup
    from loopwright.model import Model
    from loopwright.packaging.load import load
    from loopwright.packaging.verify import verify
    from loopwright.report import ApplyReport
    from loopwright.shape_plan import Portfolio, plan_shapes
    from loopwright.space_description import SpaceDescription, explain

_HOME = {
    "ApplyReport": "report",
    "Best": "best",
    "CheckResult": "check_result",
    "Client": "client",
    "Comparison": "comparison",
    "Job": "job",
    "JobEvent": "job",
    "JobGroup": "job_group",
    "Model": "model",
    "Portfolio": "shape_plan",
    "SpaceDescription": "space_description",
    "explain": "space_description",
    "export_library": "exporting",
    "load": "packaging.load",
    "plan_shapes": "shape_plan",
    "verify": "packaging.verify",
}
"""Public name -> the module that defines it. All other public names are errors."""

__all__ = [
    "ApplyReport",
    "Best",
    "CheckFailed",
    "CheckResult",
    "Client",
    "Comparison",
    "Conflict",
    "CouldNotReach",
    "InvalidRequest",
    "Job",
    "JobEvent",
    "JobGroup",
    "LoopwrightError",
    "Model",
    "NotFound",
    "Portfolio",
    "ServiceError",
    "ServiceUnavailable",
    "SpaceDescription",
    "TooManyRequests",
    "TvmUnavailable",
    "Unauthorized",
    "UnexpectedAnswer",
    "UnsupportedModel",
    "UnsupportedVersion",
    "WaitTimedOut",
    "__version__",
    "explain",
    "export_library",
    "load",
    "plan_shapes",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: Any = getattr(importlib.import_module(f"loopwright.{_HOME.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

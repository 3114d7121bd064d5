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
    from loopwright.applying.report import ApplyReport
    from loopwright.client import Client
    from loopwright.decoding.decoder import Decoder
    from loopwright.decoding.programs import decoder_programs
    from loopwright.errors import (
        CheckFailed,
        Conflict,
        CouldNotReach,
        InvalidPack,
        InvalidRequest,
        LoopwrightError,
        NotFound,
        NotLocked,
        ServiceError,
        ServiceUnavailable,
        TooManyRequests,
        TvmUnavailable,
        Unauthorized,
        UnexpectedAnswer,
        UnsupportedModel,
        UnsupportedVersion,
        WaitTimedOut,
        WrongAnswer,
        WrongCertificate,
    )
    from loopwright.frontends.space_description import SpaceDescription, explain
    from loopwright.jobs.check_result import CheckResult
    from loopwright.jobs.job import Job, JobEvent
    from loopwright.jobs.job_group import JobGroup
    from loopwright.locking.lock import Lock
    from loopwright.model import Model
    from loopwright.packaging.exporting import export_library
    from loopwright.packaging.load import load
    from loopwright.packaging.verify import verify
    from loopwright.results.best import Best
    from loopwright.results.comparison import Comparison
    from loopwright.results.stock import register_intrinsics
    from loopwright.shapes.plan import Portfolio, plan_shapes
    from loopwright.stateful import StatefulModel

_HOME = {
    "ApplyReport": "applying.report",
    "Best": "results.best",
    "CheckResult": "jobs.check_result",
    "Client": "client",
    "Comparison": "results.comparison",
    "Decoder": "decoding.decoder",
    "Job": "jobs.job",
    "JobEvent": "jobs.job",
    "JobGroup": "jobs.job_group",
    "Lock": "locking.lock",
    "Model": "model",
    "Portfolio": "shapes.plan",
    "SpaceDescription": "frontends.space_description",
    "StatefulModel": "stateful",
    "decoder_programs": "decoding.programs",
    "explain": "frontends.space_description",
    "export_library": "packaging.exporting",
    "load": "packaging.load",
    "plan_shapes": "shapes.plan",
    "register_intrinsics": "results.stock",
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
    "Decoder",
    "InvalidPack",
    "InvalidRequest",
    "Job",
    "JobEvent",
    "JobGroup",
    "Lock",
    "LoopwrightError",
    "Model",
    "NotFound",
    "NotLocked",
    "Portfolio",
    "ServiceError",
    "ServiceUnavailable",
    "SpaceDescription",
    "StatefulModel",
    "TooManyRequests",
    "TvmUnavailable",
    "Unauthorized",
    "UnexpectedAnswer",
    "UnsupportedModel",
    "UnsupportedVersion",
    "WaitTimedOut",
    "WrongAnswer",
    "WrongCertificate",
    "__version__",
    "decoder_programs",
    "explain",
    "export_library",
    "load",
    "plan_shapes",
    "register_intrinsics",
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

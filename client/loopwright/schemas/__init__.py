"""The wire, defined once: what the REST interface takes and answers.

The service answers with these models and the SDK reads them; nothing else describes the wire.
Latencies named ``*_us`` are microseconds (the median of the raw samples); raw samples named
``run_secs`` are seconds. Times are UTC.

Importing this package is light: Pydantic and the models are imported when one of them is first used, so that a process
which only loads a compiled model has none of them.
"""
# ruff: noqa: F403, F405
# Type checkers find the names of `__all__` in these modules, and `__getattr__` does while the program runs.

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopwright.codegen.kinds import *
    from loopwright.schemas.ablations import *
    from loopwright.schemas.access import *
    from loopwright.schemas.base import *
    from loopwright.schemas.bottlenecks import *
    from loopwright.schemas.comparison import *
    from loopwright.schemas.evidence import *
    from loopwright.schemas.fleet import *
    from loopwright.schemas.gates import *
    from loopwright.schemas.insight import *
    from loopwright.schemas.jobs import *
    from loopwright.schemas.lookup import *
    from loopwright.schemas.overview import *
    from loopwright.schemas.rechecks import *
    from loopwright.schemas.records import *
    from loopwright.schemas.webhooks import *
    from loopwright.schemas.workloads import *

__all__ = [
    "FINISHED",
    "MAX_LOOKUP",
    "Ablation",
    "AblationResult",
    "Ancestor",
    "AnsweredFrom",
    "AppliedRule",
    "Assembly",
    "AuditEntry",
    "BearerKind",
    "Best",
    "BestSchedule",
    "BestScheduleFilters",
    "BestScheduleSort",
    "BestSchedules",
    "Bottleneck",
    "Bottlenecks",
    "Budget",
    "CachePeak",
    "CarriedCertificate",
    "Certificate",
    "ChangeUser",
    "Check",
    "CodeLine",
    "CodeLoop",
    "ComparedEngine",
    "Comparison",
    "Coverage",
    "DayOfUse",
    "DecisionChange",
    "DecisionColumn",
    "DecisionRow",
    "Decisions",
    "Delivery",
    "DeliveryType",
    "DescribeJob",
    "DeviceClass",
    "DeviceClassCount",
    "DeviceState",
    "Drain",
    "Drift",
    "EstimatedDecision",
    "Event",
    "Evidence",
    "FailureKind",
    "Gate",
    "GateFunction",
    "GateResult",
    "GateState",
    "Grade",
    "GuestLink",
    "HistoryPoint",
    "ImportReport",
    "ImportedCertificate",
    "ImportedSchedule",
    "Interval",
    "Job",
    "JobChanged",
    "JobGroup",
    "JobSort",
    "JobState",
    "Lane",
    "Lease",
    "Library",
    "LibrarySamples",
    "Lineage",
    "LoginCode",
    "Lookup",
    "LookupAnswer",
    "LookupHit",
    "LoopModel",
    "LoweredFunction",
    "Machine",
    "Me",
    "ModelLatency",
    "ModulePayload",
    "Neighbour",
    "NewGuestLink",
    "NewRecheck",
    "NewToken",
    "NewUser",
    "NewWebhook",
    "OpCount",
    "Overview",
    "Page",
    "Peaks",
    "Phase",
    "PredictionPair",
    "PredictionRound",
    "Predictions",
    "Predictor",
    "Preview",
    "PreviewTask",
    "Problem",
    "Progress",
    "Quarantine",
    "Quota",
    "Range",
    "Recheck",
    "RecheckEvidence",
    "RecheckFinished",
    "RecheckResult",
    "RecheckVerdict",
    "Record",
    "RecordDetail",
    "RecordsAnswer",
    "RecordsLookup",
    "ReferenceFunction",
    "RejectedContender",
    "Reproduce",
    "Resubmit",
    "Right",
    "Roofline",
    "RooflinePoint",
    "RunnerUp",
    "SandboxLevel",
    "Scope",
    "SignedDocument",
    "SigningKey",
    "Slot",
    "Span",
    "Stage",
    "StoredComparison",
    "SubmitJob",
    "TargetOffer",
    "Task",
    "TaskChanged",
    "TaskState",
    "Tensor",
    "ThrottleReason",
    "Token",
    "TokenMade",
    "Trial",
    "TrialFinished",
    "TrialState",
    "Until",
    "Use",
    "User",
    "Version",
    "Visibility",
    "Webhook",
    "WebhookEvent",
    "WebhookMade",
    "Wire",
    "Worker",
    "Workload",
    "WorkloadDetail",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = [f"{__name__}.{part.name}" for part in pkgutil.iter_modules(__path__)]
    for part in map(importlib.import_module, ["loopwright.codegen.kinds", *modules]):
        globals().update({each: value for each, value in dict(vars(part)).items() if each in __all__})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

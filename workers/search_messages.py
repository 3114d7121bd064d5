"""Requests to a search behind walls, and its answers, as JSON values.

The answers come from a process that has met what users sent: ``read_…`` functions take nothing but what was asked for,
and raise ValueError for anything else.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Sequence
from typing import Any

from tuner.search.config import SearchConfig
from tuner.tune import TuneRequest
from tuner.types import (
    DeviceState,
    Failure,
    MeasureCandidate,
    Measured,
    Origin,
    Outcome,
    SandboxLevel,
    TaskSpec,
    Trial,
    Workload,
)
from workers.messages import Json

_LONGEST_TRACE = 16 * 2**20
"""Characters. Not tuned: far beyond the longest of the examples."""
_MOST_FEATURES = 2**20
"""Bytes. Not tuned: a few thousand are usual."""


def request_to_json(request: TuneRequest) -> Json:
    """Return what a search needs of a request: not its tasks, which are sent one by one, and not the loop's limits."""
    return {
        "target_json": request.target_json,
        "space": request.space,
        "seed": request.seed,
        "base_model": None if request.base_model is None else _text(request.base_model),
        "config": request.config.to_json(),
    }


def request_from_json(fields: Json) -> TuneRequest:
    """Return the request of `request_to_json`, without tasks and limits."""
    model = fields["base_model"]
    return TuneRequest(
        tasks=(),
        target_json=fields["target_json"],
        space=fields["space"],
        max_trials=0,
        max_seconds=None,
        seed=fields["seed"],
        base_model=None if model is None else base64.b64decode(model),
        config=SearchConfig.from_json(fields["config"]),
    )


def spec_to_json(spec: TaskSpec) -> Json:
    return {
        "workload": spec.workload.to_json(),
        "weight": spec.weight,
        "relatives": list(spec.relatives),
        "known": list(spec.known),
        "barred": list(spec.barred),
    }


def spec_from_json(fields: Json) -> TaskSpec:
    workload = Workload.from_json(fields["workload"])
    traces = {name: tuple(fields[name]) for name in ("relatives", "known", "barred")}
    return TaskSpec(workload, fields["weight"], **traces)


def trial_to_json(trial: Trial) -> Json:
    """Return the parts of a trial from which a search learns."""
    return {"id": trial.id, "candidate": candidate_to_json(trial.candidate), "outcome": _outcome_to_json(trial.outcome)}


def trial_from_json(fields: Json) -> Trial:
    return Trial(fields["id"], _candidate_from_json(fields["candidate"]), _outcome_from_json(fields["outcome"]))


def candidate_to_json(candidate: MeasureCandidate) -> Json:
    return {
        "trace_json": candidate.trace_json,
        "origin": candidate.origin.value,
        "predicted": candidate.predicted,
        "parent": candidate.parent,
        "features": None if candidate.features is None else _text(candidate.features),
    }


def _candidate_from_json(fields: Json) -> MeasureCandidate:
    features = fields["features"]
    return MeasureCandidate(
        fields["trace_json"],
        Origin(fields["origin"]),
        fields["predicted"],
        fields["parent"],
        None if features is None else base64.b64decode(features, validate=True),
    )


def _outcome_to_json(outcome: Outcome | None) -> Json | None:
    if isinstance(outcome, Measured):
        sandbox = None if outcome.sandbox is None else outcome.sandbox.value
        state = None if outcome.device_state is None else outcome.device_state.to_json()
        return {
            "run_secs": list(outcome.run_secs),
            "worker": outcome.worker,
            "sandbox": sandbox,
            "device_state": state,
        }
    return None if outcome is None else outcome.to_json()


def _outcome_from_json(fields: Json | None) -> Outcome | None:
    if fields is None:
        return None
    if "run_secs" in fields:
        sandbox = fields["sandbox"]
        return Measured(
            tuple(fields["run_secs"]),
            fields["worker"],
            sandbox=None if sandbox is None else SandboxLevel(sandbox),
            device_state=DeviceState.from_json(fields["device_state"]),
        )
    return Failure.from_json(fields)


def read_outputs(answer: Any, arguments: int) -> tuple[bool, ...]:
    """Return for each of the ``arguments`` whether the function only writes it. Raises ValueError."""
    if not (isinstance(answer, list) and len(answer) == arguments and all(isinstance(each, bool) for each in answer)):
        raise ValueError("one true or false for each argument was expected")
    return tuple(answer)


def read_fits(answer: Any) -> bool:
    """Raises ValueError."""
    if not isinstance(answer, bool):
        raise ValueError("true or false was expected")
    return answer


def read_candidates(answer: Any, count: int) -> list[MeasureCandidate]:
    """Return at most ``count`` candidates. Raises ValueError."""
    if not isinstance(answer, list) or len(answer) > count:
        raise ValueError(f"a list of at most {count} candidates was expected")
    try:
        candidates = [_candidate_from_json(fields) for fields in answer]
    except (AttributeError, KeyError, TypeError, binascii.Error) as error:
        raise ValueError(f"no candidate: {error}") from error
    for candidate in candidates:
        _check(candidate)
    return candidates


def _check(candidate: MeasureCandidate) -> None:
    trace, parent, predicted = candidate.trace_json, candidate.parent, candidate.predicted
    if not isinstance(trace, str) or len(trace) > _LONGEST_TRACE:
        raise ValueError("a trace was expected")
    if parent is not None and not (isinstance(parent, str) and len(parent) <= len(candidate.hash)):
        raise ValueError("a candidate's hash was expected")
    if candidate.features is not None and len(candidate.features) > _MOST_FEATURES:
        raise ValueError("too many features")
    if predicted is not None and not (isinstance(predicted, float) and math.isfinite(predicted)):
        raise ValueError("a score was expected")


def samples_to_json(samples: Sequence[tuple[str, bytes, float | None]]) -> list[list[Any]]:
    """Return samples of a cost model: group, features as stored, latency in seconds."""
    return [[group, _text(features), latency] for group, features, latency in samples]


def samples_from_json(fields: Sequence[Sequence[Any]]) -> list[tuple[str, bytes, float | None]]:
    return [(group, base64.b64decode(features), latency) for group, features, latency in fields]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()

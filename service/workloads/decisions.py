"""The decisions of a workload's fastest trials, as a table that is made once."""

from __future__ import annotations

import json
from collections.abc import Sequence

from db.results.insight import MeasuredTrace
from service.context import Context
from tuner.inspection.answers import DecisionTable

MOST = 500
"""Trials that are asked for at once."""
SAMPLED = ("tile", "categorical", "location")
"""Kinds of columns that are decisions; others follow from these."""


def fastest(
    ctx: Context, workload_hash: str, device_class: str, limit: int
) -> tuple[Sequence[MeasuredTrace], DecisionTable]:
    """Return the fastest trials on a device class, and their decisions, a row each. Raises ProblemError."""
    trials = ctx.database.insight.fastest(workload_hash, device_class, limit)
    if not trials:
        return [], DecisionTable([], [])
    table = ctx.decisions.get(
        (workload_hash, *(trial.trial_id for trial in trials)),
        lambda: ctx.sandbox.decisions(
            module_json=ctx.database.workloads.get(workload_hash).module_json,
            traces=[trial.trace_json for trial in trials],
            target_json=ctx.database.devices.get(device_class).target_json,
            latencies=[trial.median for trial in trials],
        ),
    )
    return trials, table


def are_in(trace_json: str) -> bool:
    """Return whether a trace has decisions: the schedules of some rules sample nothing, and an import may lack them."""
    return bool(json.loads(trace_json)[1])


def in_words(categories: list[str] | None, value: float | None) -> str:
    """Return a value of a table; an empty text where a trace does not make the decision."""
    if value is None:
        return ""
    return f"{value:g}" if categories is None else categories[int(value)]

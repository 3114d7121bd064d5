"""Showing programs and applying schedules: what the service asks of TVM for its answers. Runs in a disposable child."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tvm

from tuner import ir
from tuner.lowering import lower
from tuner.task import bind_shapes, require_static


def scripts(module_json: str, trace_json: str | None, target_json: str) -> Iterator[dict[str, str | None]]:
    """Yield ``{"before", "after", "trace"}``: a workload's TVMScript, unscheduled and with the trace applied, and the
    trace as Python (None for the baseline)."""
    mod = ir.module_from_json(module_json)
    before = ir.script(mod)
    if trace_json is None:
        yield {"before": before, "after": before, "trace": None}
        return
    ir.load_intrinsics(ir.target_from(target_json))
    schedule = ir.apply_trace_json(mod, trace_json)
    yield {"before": before, "after": ir.script(schedule.mod), "trace": "\n".join(map(str, schedule.trace.as_python()))}


def apply(
    module_json: str, target_json: str, traces: dict[str, str | None], shapes: dict[str, int] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield ``{"module_json", "applied", "missed"}``: the module with the best traces applied, by workload digest.

    A Relax module comes back legalised and fused, as it was tuned. ``traces`` maps digest to trace JSON, None where
    the unscheduled function is the best; ``shapes`` are bound first. Raises InvalidModule where they do not fit, and
    where a shape is still symbolic.
    """
    mod = bind_shapes(ir.module_from_json(module_json), shapes or {})
    target = ir.target_from(target_json)
    ir.load_intrinsics(target)
    mod = lower(mod, target)
    applied, missed = [], []
    for var, func in list(mod.functions.items()):
        if not isinstance(func, tvm.tirx.PrimFunc):
            continue
        require_static(func)
        name = str(var.name_hint)
        workload = ir.wrap(func)
        key = ir.digest(workload)
        if key not in traces:
            missed.append(name)
            continue
        applied.append(name)
        trace = traces[key]
        if trace is not None:
            new = ir.apply_trace_json(workload, trace).mod["main"].with_attr("tirx.is_scheduled", True)
            symbol = func.attrs.get("global_symbol") if func.attrs else None
            mod[var] = new.with_attr("global_symbol", symbol) if symbol else new.without_attr("global_symbol")
    yield {"module_json": ir.module_to_json(mod), "applied": applied, "missed": missed}

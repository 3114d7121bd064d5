"""Render programs and apply schedules with TVM for the service's answers. Runs in a disposable child."""

from __future__ import annotations

import json
from collections.abc import Iterator

from loopwright.codegen.functions import used_prim_funcs
from loopwright.codegen.program.digest import normal_form, workload_digest
from loopwright.codegen.program.lowering import bind_shapes, lower, relax_symbols
from loopwright.codegen.program.schedule import replay, scheduled_function
from loopwright.codegen.serialization import module_from_json, module_to_json
from loopwright.codegen.target import target_from
from tuner.inspection.answers import AppliedModule, Scripts
from tuner.task import require_static


def scripts(module_json: str, trace_json: str | None, target_json: str) -> Iterator[Scripts]:
    """Yield a workload and one of its traces, None for the baseline."""
    mod = module_from_json(module_json)
    before = str(mod.script())
    if trace_json is None:
        yield Scripts(before, before, None)
        return
    schedule = replay(mod, json.loads(trace_json), target_from(target_json))
    trace = "\n".join(map(str, schedule.trace.as_python()))
    yield Scripts(before, str(schedule.mod.script()), trace)


def apply(
    module_json: str, target_json: str, traces: dict[str, str | None], shapes: dict[str, int] | None = None
) -> Iterator[AppliedModule]:
    """Yield the module with the best traces applied.

    A Relax module comes back legalised and fused, as it was tuned. ``traces`` maps digest to trace JSON, None where
    the unscheduled function is the best; ``shapes`` are bound first. Raises InvalidModule where they do not fit, and
    where a shape is still symbolic.
    """
    target = target_from(target_json)
    mod = lower(bind_shapes(module_from_json(module_json), shapes or {}), target)
    applied, missed, symbols = [], [], relax_symbols(mod)
    for var, func in used_prim_funcs(mod):
        require_static(func, symbols)
        workload = normal_form(func)
        key = workload_digest(workload)
        if key not in traces:
            missed.append(str(var.name_hint))
            continue
        applied.append(str(var.name_hint))
        trace = traces[key]
        if trace is not None:
            mod[var] = scheduled_function(func, workload, json.loads(trace), target)
    yield AppliedModule(module_to_json(mod), applied, missed)

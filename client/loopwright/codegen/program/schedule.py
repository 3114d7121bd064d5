"""Schedules of workloads: making one, replaying a trace, and putting the result in place of a function."""

from __future__ import annotations

import json
from typing import Any

import tvm
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace
from tvm.target import Target

from loopwright.codegen.cpu.differences import are_below_maxima, sums_of_rows
from loopwright.codegen.cpu.vector_math import with_vector_math
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.gpu.tf32 import permits_tf32
from loopwright.codegen.math_mode import TF32, applied_math
from loopwright.codegen.program.bounds import unproven
from loopwright.codegen.program.defaults import default_schedule
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.program.flags import with_conditions
from loopwright.codegen.program.intrinsics import load_intrinsics, register_named
from loopwright.codegen.program.lowered_bounds import PROVEN
from loopwright.codegen.program.prefetching import with_prefetches
from loopwright.codegen.scheduling_lock import SCHEDULING


def new_schedule(mod: tvm.IRModule, seed: int = 1) -> Schedule:
    """Return a schedule of a copy of the module, whose errors give their reason without rendering the program.

    Some primitives change statements in place that the schedule shares with the module.
    """
    copy = mod.clone()
    for var, func in prim_funcs(mod):
        copy.update_func(var, tvm.s_tir.renew_defs(func))
    return Schedule(copy, seed=seed, debug_mask="none", error_render_level="fast")


def apply_trace(mod: tvm.IRModule, trace: list[Any], seed: int = 1) -> Schedule:
    """Replay a trace ``[instructions, decisions]`` on the workload that it is for.

    Decisions that the trace leaves out are drawn with ``seed``. Intrinsics of TVM that the trace names must be loaded;
    Loopwright's own are registered.

    Raises:
        RuntimeError, ValueError: the trace does not fit the workload.
    """
    schedule = new_schedule(mod, seed)
    with SCHEDULING:
        _register_named_in(trace)
        Trace.apply_json_to_schedule(trace, schedule)
    return schedule


def apply_trace_json(mod: tvm.IRModule, trace_json: str, seed: int = 1) -> Schedule:
    """Replay a stored trace on the workload that it is for; see `apply_trace`."""
    return apply_trace(mod, json.loads(trace_json), seed)


def replay(mod: tvm.IRModule, trace: list[Any], target: Target) -> Schedule:
    """Replay a trace on the workload that it is for, with the intrinsics that it names loaded; see `apply_trace`.

    Raises ValueError, too, if the trace rounds factors to TF32 and the workload does not permit that.
    """
    if applied_math(trace) == TF32 and not permits_tf32(mod["main"]):
        raise ValueError("this schedule rounds factors to TF32; submit the function with math tf32 to permit that")
    with SCHEDULING:
        if not _register_named_in(trace):
            load_intrinsics(target)
        return apply_trace(mod, trace)


def _register_named_in(trace: list[Any]) -> bool:
    """Register the intrinsics of Loopwright's own that a trace names, and return whether it names no others."""
    names = {str(attributes[0]) for kind, _, attributes, _ in trace[0] if kind == "Tensorize"}
    registered = [register_named(name) for name in names]
    return all(registered)


def scheduled_module(
    mod: tvm.IRModule, trace: list[Any] | None, target: Target, *, exact_math: bool = False
) -> tvm.IRModule:
    """Return the program that is built for a workload: the trace applied, or the default schedule for None.

    Elementary functions become polynomials (`loopwright.codegen.cpu.vector_math`), unless ``exact_math`` is set.
    """
    scheduled = default_schedule(mod, target) if trace is None else replay(mod, trace, target).mod
    if trace is not None:
        scheduled["main"] = with_prefetches(with_conditions(scheduled["main"]))
    if trace is not None and not unproven(mod["main"]):
        scheduled["main"] = scheduled["main"].with_attr(PROVEN, True)
    if exact_math:
        return scheduled
    result = scheduled.clone()
    for var, func in prim_funcs(scheduled):
        source = mod[var.name_hint]
        below, sums = are_below_maxima(source), sums_of_rows(source)
        result.update_func(var, with_vector_math(func, target, below_maxima=below, sums=sums))
    return result


def scheduled_function(
    func: tvm.tirx.PrimFunc,
    workload: tvm.IRModule,
    trace: list[Any] | None,
    target: Target,
    *,
    exact_math: bool = False,
) -> tvm.tirx.PrimFunc:
    """Return what takes the place of ``func``, whose normal form ``workload`` is, with a best schedule applied.

    It keeps the name of ``func`` and its place in fusion: a private function stays private. Like the program that was
    certified, it promises that its buffers do not overlap (``tirx.noalias``), unless ``func`` has False there.
    Schedules assume it anyway, and LLVM's code takes up to three times as long without the promise. The attribute
    ``tirx.is_scheduled`` tells TVM to leave the function alone.
    """
    scheduled = scheduled_module(workload, trace, target, exact_math=exact_math)["main"]
    if trace is not None:
        scheduled = scheduled.with_attr("tirx.is_scheduled", True)
    attributes = func.attrs or {}
    for name in ("global_symbol", "op_pattern"):
        scheduled = scheduled.with_attr(name, attributes[name]) if name in attributes else scheduled.without_attr(name)
    return scheduled if attributes.get("tirx.noalias", True) else scheduled.without_attr("tirx.noalias")


def with_default_schedules(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Return a copy of the module in which functions that nothing has scheduled have their default schedule.

    Nothing is promised of their buffers that they do not promise themselves.
    """
    result = mod.clone()
    for var, func in prim_funcs(mod) if "gpu" in target.keys else ():
        attributes = func.attrs or {}
        if not attributes.get("tirx.is_scheduled"):
            explicit = func if "tirx.noalias" in attributes else func.with_attr("tirx.noalias", False)
            result.update_func(var, scheduled_function(explicit, normal_form(func), None, target))
    return result

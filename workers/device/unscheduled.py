"""The unscheduled program as the reference for results: its loops in their order, those over elements on all threads.

The elements of a result do not depend on each other, so each is computed as on one thread, to the last bit.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm.s_tir import SBlockRealize, Schedule
from tvm.tirx import IterVar

from loopwright.codegen.program.schedule import new_schedule

_ENOUGH = 1024
"""Iterations that keep the threads of any host busy; more loops need not be fused. Not tuned."""


def on_all_threads(mod: tvm.IRModule) -> tvm.IRModule:
    """Return the module with the outermost loops of each block in parallel, where that is allowed.

    A block whose loops the schedule cannot prove independent is left as it is.
    """
    schedule = new_schedule(mod)
    realizes: list[Any] = []
    tvm_ffi.structural_walk(mod["main"].body, (SBlockRealize, realizes.append), order="pre")
    for realize in realizes[1:]:
        # TVM refuses some loops fused that it takes apart.
        for count in range(len(_loops(schedule, realize)), 0, -1):
            parallel = schedule.copy()
            loops = _loops(parallel, realize)[:count]
            try:
                parallel.parallel(parallel.fuse(*loops) if count > 1 else loops[0])
            except (RuntimeError, ValueError):
                continue
            schedule = parallel
            break
    return schedule.mod


def _loops(schedule: Schedule, realize: Any) -> list[Any]:
    """Return the outermost loops that only count elements of what a block writes, as many as are enough."""
    kinds = [int(axis.iter_type) for axis in realize.block.iter_vars]
    values = zip(kinds, realize.iter_values, strict=True)
    others = [var for kind, value in values if kind != IterVar.DataPar for var in _variables(value)]
    loops: list[Any] = []
    iterations = 1
    for loop in schedule.get_loops(schedule.get_sblock(realize.block.name_hint)):
        found = schedule.get(loop)
        if iterations >= _ENOUGH or any(found.loop_var.same_as(var) for var in others):
            break
        iterations *= int(found.extent)
        if iterations > 1:
            loops.append(loop)
    return loops


def _variables(expression: Any) -> list[Any]:
    variables: list[Any] = []
    tvm_ffi.structural_walk(expression, (tvm.ir.Var, variables.append), order="post")
    return variables

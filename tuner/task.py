"""Extract the tasks of a module: the tuned functions with their numbers of calls, and the untuned functions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import tvm
import tvm_ffi
from tvm import relax
from tvm.s_tir import meta_schedule as ms
from tvm.target import Target

from loopwright.codegen import labels
from loopwright.codegen.errors import InvalidModule
from loopwright.codegen.extents import buffer_shape, symbolic_extents
from loopwright.codegen.functions import has_relax, prim_funcs, relax_funcs
from loopwright.codegen.graph.layout import layout_notes
from loopwright.codegen.graph.sources import places
from loopwright.codegen.program import bounds
from loopwright.codegen.program.digest import function_digest
from loopwright.codegen.program.lowering import lower, relax_symbols
from loopwright.codegen.program.own_calls import bind_calls
from tuner.guard.module import check_callouts
from tuner.types import TaskSpec
from tuner.workload import make_workload

_FINDINGS = 3
"""Accesses that a message names."""
_COPYING = (tvm.tirx.ForKind.UNROLLED, tvm.tirx.ForKind.VECTORIZED)
_MOST_COPIES = 2**14
"""Of a statement, by loops that are unrolled or vectorized: LLVM takes 2.5 s for as many. Not tuned."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """``notes`` tell the user which functions are not tuned or keep their layout, and why."""

    tasks: tuple[TaskSpec, ...]
    notes: tuple[str, ...]


def extract_tasks(mod: tvm.IRModule, target: Target, *, unproven: bool = False) -> Tasks:
    """Return the schedulable functions of a module. Equal functions are merged, and their weights added.

    A Relax module is legalised and fused first. With ``unproven`` functions are tuned, too, that are not proven to stay
    inside of their buffers. There are no tasks in a Relax module that only calls libraries and what is left alone.
    Raises InvalidModule where a submitted function calls out, where a shape is symbolic, where a name cannot be shown,
    and where a module without Relax has nothing that can be tuned.
    """
    for var in mod.functions:
        _check_name(str(var.name_hint))
    # Before any pass sees them.
    for var, func in prim_funcs(mod):
        _check_callouts(str(var.name_hint), func)
    mod = bind_calls(mod)
    library_calls, symbols = _library_calls(mod), relax_symbols(mod)
    mod = lower(mod, target)
    if has_relax(mod):
        found = [
            (str(task.task_name), task.dispatched[0]["main"], int(task.weight))
            for task in ms.relax_integration.extract_tasks(mod, target)
        ]
        found.sort(key=lambda entry: entry[0])
    else:
        found = [(str(var.name_hint), func, 1) for var, func in prim_funcs(mod)]
    notes = [f"{name} is called as it is: a function of a library" for name in library_calls]
    notes += layout_notes(mod)
    tasks: dict[str, TaskSpec] = {}
    sources = places(mod)
    for name, func, weight in found:
        if reason := _finished(func) or unschedulable(func, symbols) or ("" if unproven else _outside(func)):
            notes.append(f"{name} is left alone: {reason}")
            continue
        workload = make_workload(func, name)
        task = TaskSpec(workload, weight, sources=sources.pop(name, ()))
        known = tasks.get(workload.hash)
        tasks[workload.hash] = task if known is None else merged(known, task)
    # TVM has merged equal functions, and named the first of them only.
    for var, func in prim_funcs(mod):
        if (others := sources.get(str(var.name_hint))) and (known := tasks.get(function_digest(func))):
            tasks[known.workload.hash] = merged(known, replace(known, weight=0, sources=others))
    if not tasks and not has_relax(mod):
        raise InvalidModule(
            "the module has no schedulable function"
            + (f" ({'; '.join(notes)})" if notes else "")
            + "; give a PrimFunc with @T.prim_func(s_tir=True) that computes in T.sblock, or a Relax function"
        )
    return Tasks(tuple(tasks.values()), tuple(notes))


def merged(task: TaskSpec, other: TaskSpec) -> TaskSpec:
    """Return two tasks of one workload as one task."""
    sources = tuple(dict.fromkeys((*task.sources, *other.sources)))
    return replace(task, weight=task.weight + other.weight, sources=sources)


def _library_calls(mod: tvm.IRModule) -> list[str]:
    """Names of the functions outside of the module that its Relax functions call; for them the module's user cares."""
    names: set[str] = set()

    def visit(node: object) -> None:
        if isinstance(node, relax.ExternFunc):
            names.add(str(node.global_symbol))

    for _, func in relax_funcs(mod):
        relax.analysis.post_order_visit(func, visit)
    return sorted(names)


def _check_name(name: str) -> None:
    if (complaint := labels.complaint(name)) is not None:
        raise InvalidModule(f"function {name[:40]!a}: {complaint}")


def _check_callouts(name: str, func: tvm.tirx.PrimFunc) -> None:
    if findings := check_callouts(func):
        raise InvalidModule(
            f"function {name} calls external code ({'; '.join(findings)}); a submitted function may only compute, "
            "so take that out of it"
        )


def _finished(func: tvm.tirx.PrimFunc) -> str:
    """Why a function that TVM made of an operator can only be used as it is; empty if it can be scheduled."""
    return "TVM has finished code for it, or calls its own library" if check_callouts(func) else ""


def require_static(func: tvm.tirx.PrimFunc, relax_symbols: Collection[str] = ()) -> None:
    """Raise InvalidModule if a shape is symbolic, which the user can bind.

    ``relax_symbols`` are those of the Relax functions that call it, whose names are the ones to bind.
    """
    if own := {str(extent.name) for extent in symbolic_extents(func)}:
        symbols = sorted(relax_symbols or own)
        example = ", ".join(f'"{name}": 128' for name in symbols)
        raise InvalidModule(
            f"symbolic shape ({', '.join(symbols)}): give shapes={{{example}}} to say what to tune for "
            f"(on the command line: {' '.join(f'--shape {name}=128' for name in symbols)})"
        )


def _outside(func: tvm.tirx.PrimFunc) -> str:
    """Why a function is not known to stay inside of its buffers; empty if it is."""
    findings = bounds.unproven(func)
    if not findings:
        return ""
    more = f" and {len(findings) - _FINDINGS} more" if len(findings) > _FINDINGS else ""
    return (
        f"it is not proven to stay inside of its buffers ({'; '.join(findings[:_FINDINGS])}{more}); write indices so "
        "that this follows from loops and conditions, or limit them by T.min and T.max"
    )


def unschedulable(func: tvm.tirx.PrimFunc, relax_symbols: Collection[str] = ()) -> str | None:
    """Return why a function cannot be scheduled; None if it can. Raises InvalidModule as `require_static` does."""
    require_static(func, relax_symbols)
    if not all(isinstance(param.ty, tvm.tirx.buffer.BufferType) for param in func.params):
        return "it has a parameter that is not a buffer"
    extents = [extent for param in func.params for extent in buffer_shape(param)]
    if computed := [str(extent) for extent in extents if not isinstance(extent, tvm.tirx.IntImm)]:
        return f"it has a computed extent ({', '.join(computed)}), which cannot be bound by name; make it static"
    if any(int(extent) < 1 for extent in extents):
        return "it has a buffer without elements"
    blocks: list[tvm.s_tir.SBlock] = []
    tvm_ffi.structural_walk(func.body, (tvm.s_tir.SBlock, blocks.append), order="post")
    if not any(block.iter_vars for block in blocks):
        return "it has no block with axes (T.sblock with T.axis)"
    if any("opaque" in str(key) for block in blocks for key in block.annotations):
        return "its blocks are opaque to scheduling"
    if (copies := _copies(func.body)) > _MOST_COPIES:
        return f"its loops ask for {copies:,} copies of a statement; unroll and vectorize {_MOST_COPIES:,} at most"
    return None


def _copies(stmt: tvm.tirx.Stmt) -> int:
    """Return how many copies of a statement the loops in another one ask for, at most: 1 where none is copied."""
    found = [1]

    def visit(loop: tvm.tirx.For) -> tvm_ffi.WalkResult:
        copied = loop.kind in _COPYING and isinstance(loop.extent, tvm.tirx.IntImm)
        found.append((int(loop.extent) if copied else 1) * _copies(loop.body))
        return tvm_ffi.WalkResult.SKIP

    tvm_ffi.structural_walk(stmt, (tvm.tirx.For, visit), order="pre")
    return max(found)

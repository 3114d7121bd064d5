"""Parse a submission: text, checked module, tasks. Runs in a disposable child, because the text may be hostile.

All arguments are JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import tvm

from loopwright.codegen.cpu.vector_math import with_exact_math
from loopwright.codegen.errors import CodegenError, InvalidModule
from loopwright.codegen.gpu.tf32 import check_math, with_tf32
from loopwright.codegen.graph.sources import with_lines
from loopwright.codegen.math_mode import FP32, TF32, MathMode
from loopwright.codegen.program.lowering import bind_shapes
from loopwright.codegen.script import parse_script
from loopwright.codegen.serialization import module_from_json, module_to_json
from loopwright.codegen.target import target_from
from tuner.errors import InvalidSpace, TunerError
from tuner.guard.module import load_module_json
from tuner.guard.tvmscript import check_tvmscript
from tuner.inspection.answers import Submission
from tuner.space.explain import without_rule
from tuner.space.user import user_space
from tuner.task import Tasks, extract_tasks, merged
from tuner.types import TaskSpec


def read_module(fmt: str, data: str) -> tvm.IRModule:
    """Return the module of a submission. Raises InvalidModule with a message that says what to do."""
    if fmt == "tvm-json":
        return load_module_json(data)
    source = check_tvmscript(data)
    try:
        parsed = parse_script(source)
    except Exception as error:
        raise InvalidModule(f"TVM cannot parse this TVMScript: {_diagnosis(error)}") from error
    return with_lines(_module(parsed), source)


def _module(parsed: Any) -> tvm.IRModule:
    if isinstance(parsed, tvm.IRModule):
        return parsed
    if isinstance(parsed, tvm.tirx.PrimFunc):
        name = parsed.attrs.get("global_symbol", "main") if parsed.attrs else "main"
        return tvm.IRModule({str(name): parsed.with_attr("global_symbol", str(name))})
    if isinstance(parsed, tvm.relax.Function):
        return tvm.IRModule({"main": parsed.with_attr("global_symbol", "main")})
    raise InvalidModule(f"the TVMScript defines a {type(parsed).__name__}; submit a module or a function")


Shapes = dict[str, int]
"""Values of symbolic extents, by name."""


def parse(
    fmt: str,
    data: str,
    target_json: str,
    shapes: Shapes | list[Shapes] | None,
    space: list[Any] | None,
    exact_math: bool = False,
    math: MathMode = FP32,
    unproven: bool = False,
) -> Iterator[Submission]:
    """Yield a submission taken apart.

    With a list of shapes, the module is tuned for each of them and kept as it was submitted. With ``exact_math``,
    elementary functions are those of the C library. With the ``math`` tf32, products of float32 may round to TF32, as
    they may in a module that says so itself. ``unproven`` is that of `tuner.task.extract_tasks`.
    Raises InvalidModule, UnsupportedVersion, InvalidTarget or InvalidSpace.
    """
    target = target_from(target_json)
    mod = read_module(fmt, data)
    if exact_math:
        mod = with_exact_math(mod)
    if math == TF32:
        mod = with_tf32(mod)
    check_math(mod, target)
    if isinstance(shapes, list):
        found = _for_each(mod, shapes, target, unproven)
    else:
        mod = _bound(mod, shapes or {})
        found = _extract(mod, target, unproven)
    space_json = None
    notes = found.notes
    if space is None:
        notes = (*notes, *_without_rules(found.tasks, target))
    else:
        _check_space(space, [task.workload.module_json for task in found.tasks], target)
        space_json = json.dumps(space, sort_keys=True, separators=(",", ":"))
    yield Submission(
        module_json=module_to_json(mod),
        space_json=space_json,
        tasks=found.tasks,
        left_alone=notes if found.tasks else (_nothing_to_tune(found.notes), *notes),
    )


def _without_rules(tasks: Sequence[TaskSpec], target: tvm.target.Target) -> Iterator[str]:
    """Yield a note for each function that TVM's own rules alone schedule."""
    for task in tasks:
        reason = without_rule(module_from_json(task.workload.module_json), target)
        if reason is not None:
            yield f"{task.workload.name} has the programs of TVM's rules alone: {reason}"


def _bound(mod: tvm.IRModule, shapes: Shapes) -> tvm.IRModule:
    try:
        return bind_shapes(mod, shapes)
    except CodegenError:
        raise
    except Exception as error:  # as in `_extract`
        raise InvalidModule(f"TVM cannot bind the shapes of this module: {_diagnosis(error)}") from error


def _extract(mod: tvm.IRModule, target: tvm.target.Target, unproven: bool) -> Tasks:
    try:
        return extract_tasks(mod, target, unproven=unproven)
    except (CodegenError, TunerError):
        raise
    except Exception as error:  # TVM's passes raise whatever the module makes them meet.
        raise InvalidModule(f"TVM cannot lower this module: {_diagnosis(error)}") from error


def _for_each(mod: tvm.IRModule, bindings: list[Shapes], target: tvm.target.Target, unproven: bool) -> Tasks:
    """Return the tasks of every binding, each named after the first that it comes from."""
    if not bindings:
        raise InvalidModule('the list of shapes is empty; give one or more, as [{"n": 1}, {"n": 64}]')
    tasks: dict[str, TaskSpec] = {}
    notes: dict[str, None] = {}
    for binding in bindings:
        found = _extract(_bound(mod, binding), target, unproven)
        notes |= dict.fromkeys(found.notes)
        of = ", ".join(f"{name}={extent}" for name, extent in sorted(binding.items()))
        for task in found.tasks:
            if task.workload.hash in tasks:
                tasks[task.workload.hash] = merged(tasks[task.workload.hash], task)
            else:
                named = replace(task.workload, name=f"{task.workload.name} [{of}]")
                tasks[task.workload.hash] = replace(task, workload=named)
    return Tasks(tuple(tasks.values()), tuple(notes))


def _nothing_to_tune(notes: Sequence[str]) -> str:
    why = "every function that the module calls is left as it is" if notes else "the module calls no function"
    return f"nothing to tune: {why}; client.compile builds it without a search"


def _check_space(space: list[Any], modules: list[str], target: tvm.target.Target) -> None:
    """A space must apply to at least one of the functions, if there are any."""
    reasons: list[InvalidSpace] = []
    for module_json in modules:
        try:
            user_space(module_from_json(module_json), target, space, seed=1)
        except InvalidSpace as error:
            reasons.append(error)
    if reasons and len(reasons) == len(modules):
        raise reasons[0]


def _diagnosis(error: Exception) -> str:
    """Return what a user can use of TVM's message: its first lines, without the native stack."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith(("  File", "Traceback"))]
    return " ".join(" ".join(lines[:6]).split())[:600] or type(error).__name__

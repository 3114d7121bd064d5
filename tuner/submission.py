"""Taking a submission apart: text -> checked module -> tasks. Runs in a disposable child, for the text is hostile.

Everything that goes in and comes out is JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import tvm

from tuner import ir
from tuner.errors import InvalidModule, InvalidSpace, TunerError
from tuner.guard.module import load_module_json
from tuner.guard.tvmscript import check_tvmscript
from tuner.space.user import user_space
from tuner.task import bind_shapes, extract_tasks


def read_module(fmt: str, data: str) -> tvm.IRModule:
    """The module in a submission. Raises InvalidModule with a message that says what to do."""
    if fmt == "tvm-json":
        return load_module_json(data)
    source = check_tvmscript(data)
    try:
        parsed = tvm.script.from_source(source)
    except Exception as error:
        raise InvalidModule(f"TVM cannot parse this TVMScript: {_diagnosis(error)}") from error
    if isinstance(parsed, tvm.IRModule):
        return parsed
    if isinstance(parsed, tvm.tirx.PrimFunc):
        name = parsed.attrs.get("global_symbol", "main") if parsed.attrs else "main"
        return tvm.IRModule({str(name): parsed.with_attr("global_symbol", str(name))})
    if isinstance(parsed, tvm.relax.Function):
        return tvm.IRModule({"main": parsed.with_attr("global_symbol", "main")})
    raise InvalidModule(f"the TVMScript defines a {type(parsed).__name__}; submit a module or a function")


def parse(
    fmt: str, data: str, target_json: str, shapes: dict[str, int] | None, space: list[Any] | None
) -> Iterator[dict[str, Any]]:
    """Yield ``{"module_json", "tasks": […], "notes": […], "space_json", "space_hash"}`` of a submission.

    A task is ``{"hash", "name", "module_json", "script", "args": [[shape, dtype], …], "weight"}``.
    Raises InvalidModule, UnsupportedVersion, InvalidTarget or InvalidSpace.
    """
    target = ir.target_from(target_json)
    mod = bind_shapes(read_module(fmt, data), shapes or {})
    try:
        found = extract_tasks(mod, target)
    except TunerError:
        raise
    except Exception as error:  # TVM's passes raise whatever the module makes them meet.
        raise InvalidModule(f"TVM cannot lower this module: {_diagnosis(error)}") from error
    space_json = None
    if space is not None:
        _check_space(space, [task.workload.module_json for task in found.tasks], target)
        space_json = json.dumps(space, sort_keys=True, separators=(",", ":"))
    yield {
        "module_json": ir.module_to_json(mod),
        "tasks": [
            {
                "hash": task.workload.hash,
                "family": task.workload.family,
                "name": task.workload.name,
                "module_json": task.workload.module_json,
                "script": task.workload.script,
                "args": [[list(info.shape), info.dtype] for info in task.workload.args],
                "weight": task.weight,
            }
            for task in found.tasks
        ],
        "notes": list(found.notes),
        "space_json": space_json,
        "space_hash": "default" if space_json is None else hashlib.sha256(space_json.encode()).hexdigest()[:16],
    }


def _check_space(space: list[Any], modules: list[str], target: tvm.target.Target) -> None:
    """A space must apply to at least one of the functions."""
    reasons: list[InvalidSpace] = []
    for module_json in modules:
        try:
            user_space(ir.module_from_json(module_json), target, space, seed=1)
        except InvalidSpace as error:
            reasons.append(error)
    if len(reasons) == len(modules):
        raise reasons[0]


def _diagnosis(error: Exception) -> str:
    """What a user can use of TVM's message: its first lines, without the native stack."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith(("  File", "Traceback"))]
    return " ".join(" ".join(lines[:6]).split())[:600] or type(error).__name__

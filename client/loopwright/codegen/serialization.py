"""Modules and traces as JSON. TVM's JSON is bound to its version, which is stored with it (see `versions`)."""

from __future__ import annotations

import json
from typing import Any

import tvm
from tvm.s_tir.schedule import Trace
from tvm_ffi.serialization import from_json_graph_str


def module_to_json(mod: tvm.IRModule) -> str:
    return str(tvm.ir.save_json(mod))


def module_from_json(text: str) -> tvm.IRModule:
    """Return the module that `module_to_json` wrote, by the same version of TVM.

    For trusted text only: the loader is C++ code, and the service reads what users send in disposable processes.
    `tvm.ir.load_json` would take seven times as long, to bring text of earlier versions up to date first.
    """
    return from_json_graph_str(text)


def trace_to_json(trace: Trace) -> str:
    """Return ``[instructions, decisions]`` as compact JSON text, the form that is stored and hashed."""
    return compact_json(trace_to_list(trace))


def compact_json(plain: list[Any]) -> str:
    """Return what `trace_to_list` returned as `trace_to_json` does."""
    return json.dumps(plain, separators=(",", ":"))


def trace_to_list(trace: Trace) -> list[Any]:
    """Return ``[instructions, decisions]`` as plain JSON values."""
    return [plain_json(part) for part in trace.as_json()]


def plain_json(value: Any) -> Any:
    """Return TVM's containers and boxed numbers as plain JSON values."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | int | float) or value is None:
        return value
    if hasattr(value, "items"):
        return {str(k): plain_json(v) for k, v in value.items()}
    if hasattr(value, "__iter__"):
        return [plain_json(item) for item in value]
    return value.value

"""Building a candidate: replay its trace, generate code, and hand the code on as text.

Runs in a fork of a warm child. For llvm the artifact is LLVM IR after optimisation, which TVM's own JIT loads
without a C compiler or linker; for cuda it is a shared library, as the device code must travel with its host code.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tvm
from tvm.s_tir import dlight
from tvm.target import Target

from tuner import ir
from workers import host_lock

FUNCTION = "main"

# In the warm child, once, instead of in every fork. Those of cuda take seconds, and only builders beside a GPU need them.
ir.load_intrinsics("llvm")


def build(module_json: str, trace_json: str | None, target_json: str) -> Iterator[dict[str, Any]]:
    """Yield the artifact ``{"format": "ll" | "so", "code": text}`` of one candidate (None: the baseline)."""
    with host_lock.busy():
        artifact = _build(module_json, trace_json, target_json)
    yield artifact


def _build(module_json: str, trace_json: str | None, target_json: str) -> dict[str, Any]:
    target = ir.target_from(target_json)
    mod = ir.module_from_json(module_json)
    if trace_json is not None:
        ir.load_intrinsics(target.kind.name)
        mod = ir.apply_trace_json(mod, trace_json).mod
    elif target.kind.name == "cuda":
        mod = default_cuda_schedule(mod, target)
    if target.kind.name == "cuda":
        target = Target(target, host="llvm")
    return package(tvm.compile(mod, target=target).mod, target.kind.name)


def default_cuda_schedule(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """The cuda baseline: DLight's default schedule."""
    with target:
        return dlight.ApplyDefaultSchedule(
            dlight.gpu.Matmul(),
            dlight.gpu.GEMV(),
            dlight.gpu.Reduction(),
            dlight.gpu.GeneralReduction(),
            dlight.gpu.Fallback(),
        )(mod)


def package(module: tvm.runtime.Module, kind: str) -> dict[str, Any]:
    if kind == "llvm":
        path = Path("code.ll").resolve()
        module.write_to_file(str(path), "ll")
        return {"format": "ll", "code": path.read_text()}
    path = Path("code.so").resolve()
    module.export_library(str(path))
    return {"format": "so", "code": base64.b64encode(path.read_bytes()).decode()}


def load(artifact: dict[str, Any], name: str) -> tvm.runtime.Module:
    """The artifact as a module that runs, in this process; ``name`` is a file name unique within it."""
    path = Path(f"{name}.{artifact['format']}").resolve()
    if artifact["format"] == "ll":
        path.write_text(artifact["code"])
    else:
        path.write_bytes(base64.b64decode(artifact["code"]))
    return tvm.runtime.load_module(str(path))

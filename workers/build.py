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
from tvm.target import Target

from tuner import ir
from workers import cuda

FUNCTION = "main"

# In the warm child, once, instead of in every fork. Those of cuda take seconds: only builders beside a GPU load them.
ir.load_intrinsics(Target("llvm"))


def build(module_json: str, trace_json: str | None, target_json: str) -> Iterator[dict[str, Any]]:
    """Yield the artifact ``{"format": "ll" | "so" | "cu", "code": text}`` of one candidate (None: the baseline)."""
    target = ir.target_from(target_json)
    on_cuda = target.kind.name == "cuda"
    mod = ir.module_from_json(module_json)
    if trace_json is not None:
        ir.load_intrinsics(target)
        mod = ir.apply_trace_json(mod, trace_json).mod
    elif on_cuda:
        mod = cuda.default_schedule(mod, target)
    yield artifact(mod, target)


def artifact(mod: tvm.IRModule, target: Target) -> dict[str, Any]:
    """The code of a scheduled module, in the format that `load` takes."""
    if target.kind.name == "cuda":
        return cuda.build(mod, target)
    path = Path("code.ll").resolve()
    tvm.compile(mod, target=target).mod.write_to_file(str(path), "ll")
    return {"format": "ll", "code": path.read_text()}


def load(artifact: dict[str, Any], name: str) -> tvm.runtime.Module:
    """The artifact as a module that runs, in this process; ``name`` is a file name unique within it.

    Raises RuntimeError for CUDA source ("cu"): it was built on a machine that cannot compile it.
    """
    path = Path(f"{name}.{artifact['format']}").resolve()
    if artifact["format"] == "cu":
        raise RuntimeError(f"the builder found no CUDA runtime: {cuda.NEEDS}")
    if artifact["format"] == "ll":
        path.write_text(artifact["code"])
    else:
        path.write_bytes(base64.b64decode(artifact["code"]))
    return tvm.runtime.load_module(str(path))

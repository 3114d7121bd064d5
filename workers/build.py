"""Building a candidate: replay its trace, generate code, and hand the code on as text.

Runs in a fork of a warm child. The artifact is a shared library: machine code is generated here, where several build at
a time, and not by the one who measures. For llvm a linker will do; where there is none, the artifact is LLVM IR, which
TVM's own JIT loads.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tvm
from tvm.target import Target

from loopwright.codegen.build import compile_module
from loopwright.codegen.intrinsics import load_intrinsics
from loopwright.codegen.schedule import scheduled_module
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from workers import cuda

FUNCTION = "main"

# In the warm child, once, instead of in every fork. Those of cuda take seconds: only builders beside a GPU load them.
load_intrinsics(Target("llvm"))


def build(module_json: str, trace_json: str | None, target_json: str) -> Iterator[dict[str, Any]]:
    """Yield the artifact ``{"format": "so" | "ll" | "cu", "code": text}`` of one candidate (None: the baseline)."""
    target = target_from(target_json)
    trace = None if trace_json is None else json.loads(trace_json)
    yield artifact(scheduled_module(module_from_json(module_json), trace, target), target)


def artifact(mod: tvm.IRModule, target: Target) -> dict[str, Any]:
    """The code of a scheduled module, in the format that `load` takes."""
    if target.kind.name == "cuda":
        return cuda.build(mod, target)
    module = compile_module(mod, target, argument_checks=False)
    linker = shutil.which("ld")
    if linker is None:
        return {"format": "ll", "code": module.inspect_source("ll")}
    module.write_to_file("code.o", "obj")
    subprocess.run([linker, "-shared", "-o", "code.so", "code.o"], check=True, stdin=subprocess.DEVNULL)
    return {"format": "so", "code": base64.b64encode(Path("code.so").read_bytes()).decode()}


def load(artifact: dict[str, Any]) -> tvm.runtime.Module:
    """The artifact as a module that runs, in this process.

    Raises RuntimeError for CUDA source ("cu"): it was built on a machine that cannot compile it.
    """
    if artifact["format"] == "cu":
        raise RuntimeError(f"the builder found no CUDA runtime: {cuda.NEEDS}")
    code = artifact["code"].encode() if artifact["format"] == "ll" else base64.b64decode(artifact["code"])
    # A file of its own for each: a library that is loaded must not change.
    with tempfile.NamedTemporaryFile(suffix=f".{artifact['format']}") as file:
        file.write(code)
        file.flush()
        return tvm.runtime.load_module(file.name)

"""Building a candidate: replay its trace, generate code, and return the code as text.

Runs in a fork of a warm child. The artifact is a shared library: machine code is generated here, where several builders
work at a time, and not by the measurer. For llvm a linker suffices; without one, the artifact is LLVM IR, which TVM's
own JIT loads.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tvm
from tvm.target import Target

from loopwright.codegen.host import huge_pages
from loopwright.codegen.program import linking
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.intrinsics import load_intrinsics
from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from loopwright.codegen.weights.packed_weight import PACK
from loopwright.codegen.weights.prepacking import split
from workers.device import cuda
from workers.device.unscheduled import on_all_threads
from workers.entry import entry
from workers.messages import Artifact, ArtifactFormat, BuildRequest

FUNCTION = "main"

# In the warm child, once, instead of in every fork. Those of cuda take seconds: only builders beside a GPU load them.
load_intrinsics(Target("llvm"))


@entry
def build(request: BuildRequest) -> Iterator[Artifact]:
    yield artifact_of(request)


@entry
def build_each(questions: Iterator[BuildRequest]) -> Iterator[Artifact]:
    """Yield the artifact of each question; an error ends the session."""
    yield from map(artifact_of, questions)


def artifact_of(request: BuildRequest) -> Artifact:
    target = target_from(request.target_json)
    trace = None if request.trace_json is None else json.loads(request.trace_json)
    mod = module_from_json(request.module_json)
    scheduled = scheduled_module(mod, trace, target, exact_math=request.exact_math)
    return artifact(on_all_threads(scheduled) if request.exact_math else scheduled, target)


def artifact(mod: tvm.IRModule, target: Target) -> Artifact:
    """Return the code of a scheduled module, in a format that `load` takes on a machine of the target's architecture.

    Raises RuntimeError if that is not this machine's, and no linker for it is installed.
    """
    if target.kind.name == "cuda":
        return cuda.build(mod, target)
    mod, packed = split(mod)
    module = compile_module(mod, target, argument_checks=False)
    linker = linking.linker(target)
    if linker is None and linking.is_foreign(target):
        raise RuntimeError(f"no linker for {linking.machine(target)}: {linking.linker_packages(target)}")
    if linker is None:
        return Artifact(ArtifactFormat.LLVM_IR, module.inspect_source("ll"), packed)
    # In the working directory, which is all that a builder may write to.
    with tempfile.TemporaryDirectory(dir=".") as folder:
        compiled, linked = (str(Path(folder, name)) for name in ("code.o", "code.so"))
        module.write_to_file(compiled, "obj")
        linking.link(linker, [compiled], linked)
        code = Path(linked).read_bytes()
    return Artifact(ArtifactFormat.SHARED_LIBRARY, base64.b64encode(code).decode(), packed)


def load(artifact: Artifact) -> tvm.runtime.Module:
    """Load an artifact into this process as a module that runs.

    Raises RuntimeError for CUDA source: the artifact was built on a machine that cannot compile it.
    """
    if artifact.format is ArtifactFormat.CUDA_SOURCE:
        raise RuntimeError(f"the builder found no CUDA runtime: {cuda.NEEDS}")
    is_text = artifact.format is ArtifactFormat.LLVM_IR
    code = artifact.code.encode() if is_text else base64.b64decode(artifact.code)
    # Each artifact has its own file: a library that is loaded must not change.
    with tempfile.NamedTemporaryFile(suffix=f".{artifact.format}") as file:
        file.write(code)
        file.flush()
        return tvm.runtime.load_module(file.name)


def with_packed_weight(
    module: tvm.runtime.Module, artifact: Artifact, arguments: Sequence[Any], device: tvm.runtime.Device
) -> list[Any]:
    """Return the arguments for a loaded artifact, with its weight packed, from the arguments of the workload."""
    packed = artifact.packed
    if packed is None:
        return list(arguments)
    tensor = tvm.runtime.empty(packed.shape, packed.dtype, device)
    module[PACK](arguments[packed.argument], tensor)
    huge_pages.move([tensor])  # as those of a user's process are
    return [tensor if place == packed.argument else each for place, each in enumerate(arguments)]

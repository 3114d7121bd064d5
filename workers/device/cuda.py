"""CUDA code: the baseline schedule, the artifact, and what a GPU host must have for them."""

from __future__ import annotations

import base64
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import tvm
from tvm.support import cc
from tvm.target import Target

from loopwright.codegen.program.build import compile_module
from workers.messages import Artifact, ArtifactFormat

NEEDS = (
    "a GPU host needs the NVIDIA driver, libcudart.so.13 where the loader finds it (LD_LIBRARY_PATH), "
    "nvcc of CUDA 13 on PATH or in /usr/local/cuda/bin, and a C++ compiler"
)


def build(mod: tvm.IRModule, target: Target) -> Artifact:
    """Return the artifact of a scheduled module: a shared library.

    On a machine whose TVM has no CUDA runtime the artifact is CUDA source, because nothing can be compiled further.
    Raises RuntimeError if a GPU host lacks a compiler.
    """
    on_gpu_host = runtime_loads()
    if on_gpu_host:
        _choose_compiler()
    module = compile_module(mod, target, argument_checks=False)
    if not on_gpu_host:
        return Artifact(ArtifactFormat.CUDA_SOURCE, _source(module))
    # In the working directory, which is all that a builder may write to.
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder, "code.so").resolve()
        module.export_library(str(path))
        code = path.read_bytes()
    return Artifact(ArtifactFormat.SHARED_LIBRARY, base64.b64encode(code).decode())


def source(mod: tvm.IRModule, target: Target) -> str:
    """Return the CUDA source of a scheduled module's kernels."""
    return _source(compile_module(mod, target, argument_checks=False))


def _source(module: tvm.runtime.Module) -> str:
    return str(module.imports[0].inspect_source())


def runtime_loads() -> bool:
    """Return whether TVM found the driver and the CUDA runtime library."""
    return tvm.get_global_func("ffi.Module.load_from_bytes.cuda", allow_missing=True) is not None


def _choose_compiler() -> None:
    if shutil.which("nvcc") is None:
        os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/local/cuda/bin"
    missing = [name for name, found in (("nvcc", shutil.which("nvcc")), ("a C++ compiler", cc.get_cc())) if not found]
    if missing:
        raise RuntimeError(f"{' and '.join(missing)} not found: {NEEDS}")
    # NVRTC is several times faster, but its Python binding is an extra.
    has_nvrtc = importlib.util.find_spec("cuda") is not None and importlib.util.find_spec("cuda.bindings") is not None
    os.environ["TVM_CUDA_COMPILE_MODE"] = "nvrtc" if has_nvrtc else "nvcc"

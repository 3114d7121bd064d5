"""CUDA's compiler on machines without a GPU: NVRTC and its headers, from wheels."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from unittest import mock

from tvm.support.nvcc import compile_cuda


def cubin(source: str, arch: str) -> bytes:
    """Return the machine code of CUDA source for an architecture such as "sm_90", compiled as TVM compiles kernels.

    Raises RuntimeError with NVRTC's log if NVRTC refuses the source.
    """
    return _compiled(source, "cubin", arch)


def ptx(source: str, arch: str) -> str:
    """Return the PTX of CUDA source for an architecture, and raise, as `cubin` does."""
    return _compiled(source, "ptx", arch).decode()


def _compiled(source: str, form: str, arch: str) -> bytes:
    toolkit = _toolkit()
    with mock.patch.dict(os.environ, CUDA_PATH=str(toolkit)):
        return bytes(compile_cuda(source, form, arch, [f"-I{toolkit / 'include' / 'cccl'}"], compiler="nvrtc"))


def _toolkit() -> Path:
    spec = importlib.util.find_spec("nvidia.cu13")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])

"""The shared memory that a kernel needs, and that a GPU has."""

from __future__ import annotations

import math

import tvm
import tvm_ffi
from tvm.ir.instrument import PassInstrument, pass_instrument
from tvm.ir.transform import PassInfo
from tvm.target import Target
from tvm.tirx import AllocBuffer

from loopwright.codegen.target import STATIC_SHARED_BYTES, most_shared_bytes

_KERNELS_ARE_APART = "tirx.SplitHostDevice"
"""The pass after which each kernel is a function of its own, and nothing more lies in its shared memory."""


def shared_memory_limit(target: Target) -> PassInstrument:
    """Return an instrument that raises ValueError for a kernel with more shared memory than the target's GPUs have.

    Otherwise CUDA's compiler would refuse the kernel, or the driver its launch, and neither says what to change.
    """
    return _SharedMemoryLimit(str(target.attrs.get("arch", "")), most_shared_bytes(target))


@pass_instrument
class _SharedMemoryLimit:
    def __init__(self, arch: str, most: int | None) -> None:
        self._arch = arch
        self._most = most

    def run_after_pass(self, mod: tvm.IRModule, info: PassInfo) -> None:
        if info.name != _KERNELS_ARE_APART:
            return
        for func in mod.functions.values():
            if not isinstance(func, tvm.tirx.PrimFunc):
                continue
            declared, dynamic = shared_memory(func)
            if declared > STATIC_SHARED_BYTES:
                raise ValueError(
                    f"a kernel declares {declared} bytes of shared memory, and CUDA allows {STATIC_SHARED_BYTES}; "
                    "more can be had in the scope shared.dyn"
                )
            if self._most is not None and declared + dynamic > self._most:
                raise ValueError(
                    f"a kernel needs {declared + dynamic} bytes of shared memory for each block, and {self._arch} has "
                    f"{self._most}; use smaller tiles"
                )


def shared_memory(kernel: tvm.tirx.PrimFunc) -> tuple[int, int]:
    """Return the bytes of shared memory that a kernel declares (``shared``) and asks for (``shared.dyn``)."""
    found = {"shared": 0, "shared.dyn": 0}

    def add(node: AllocBuffer) -> None:
        buffer = node.buffer
        if buffer.scope() in found:
            bits = tvm.DataType(str(buffer.dtype)).bits * tvm.DataType(str(buffer.dtype)).lanes
            found[buffer.scope()] += math.prod(map(int, buffer.shape)) * ((bits + 7) // 8)

    tvm_ffi.structural_walk(kernel.body, (AllocBuffer, add), order="pre")
    return found["shared"], found["shared.dyn"]

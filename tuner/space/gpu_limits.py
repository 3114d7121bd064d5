"""The post-processors of a space on a GPU, by the kind of shared memory that a program has.

A target's limit is what a kernel may ask for when it is launched, in the scope ``shared.dyn``. What a kernel declares,
in the scope ``shared``, is limited to 48 KiB on every GPU. TVM's `VerifyGPUCode` knows one limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm.s_tir import SBlock
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule import _ffi_api
from tvm.target import Target

from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.target import STATIC_SHARED_BYTES, with_shared_bytes


def for_declared_memory(postprocs: Sequence[ms.Postproc], mod: tvm.IRModule, target: Target) -> list[ms.Postproc]:
    """Return post-processors that accept no program with more than 48 KiB of shared memory, and are equal otherwise."""
    limited = ms.TuneContext(mod=mod, target=with_shared_bytes(target, STATIC_SHARED_BYTES))
    verify = ms.postproc.VerifyGPUCode()
    _ffi_api.PostprocInitializeWithTuneContext(verify, limited)
    return [verify if isinstance(each, ms.postproc.VerifyGPUCode) else each for each in postprocs]


def verifying(postprocs: Sequence[ms.Postproc]) -> list[ms.Postproc]:
    """Return the post-processors that hold a program to the limits of a GPU; none on a CPU."""
    return [each for each in postprocs if isinstance(each, ms.postproc.VerifyGPUCode)]


def declares_shared_memory(mod: tvm.IRModule) -> bool:
    """Return whether a scheduled program has a buffer in the scope ``shared``.

    One that has buffers in ``shared.dyn`` besides is held to the same 48 KiB.
    """
    blocks: list[SBlock] = []
    for _, func in prim_funcs(mod):
        tvm_ffi.structural_walk(func.body, (SBlock, blocks.append), order="pre")
    return any(buffer.scope() == "shared" for block in blocks for buffer in block.alloc_buffers)

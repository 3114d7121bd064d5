"""Copies to a GPU's shared memory that go on while threads compute (``cp.async``).

Sketches of TVM and of Loopwright ask for them by an annotation, and TVM makes them if an option of the build is set.
"""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm.tirx import For

from loopwright.codegen.functions import prim_funcs

ASYNC_STAGES = "software_pipeline_async_stages"
"""The annotation of a loop that is a software pipeline with such copies: the stages that are copies."""

FIRST_ASYNC = 80
"""Compute capability, times ten, of the first GPUs that copy to shared memory while they compute."""


def copies_asynchronously(mod: tvm.IRModule) -> bool:
    """Return whether a schedule asks for such copies."""
    loops: list[For] = []
    for _, func in prim_funcs(mod):
        tvm_ffi.structural_walk(func.body, (For, loops.append), order="pre")
    return any(ASYNC_STAGES in loop.annotations for loop in loops)

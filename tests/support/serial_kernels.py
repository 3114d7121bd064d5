"""Kernels of GPUs as loops, which any machine can run."""

from __future__ import annotations

import re

import tvm
from tvm.script import from_source

from loopwright.codegen.gpu.async_copy import ASYNC_STAGES


def serial(mod: tvm.IRModule) -> tvm.IRModule:
    """Return a scheduled module with a loop for each axis of threads, and all memory visible to all of them.

    A scheduled function means what its loops mean in order: code generation makes threads of them, and puts barriers
    between. So this shows whether a schedule computes the right thing, not whether code generation does.
    """
    script = re.sub(r'T\.thread_binding\((.*?), thread="[^"]*"', r"T.serial(\1", mod.script())
    assert "thread_binding" not in script
    # TVM copies asynchronously on GPUs only. The pipelines stay, and what they compute is checked.
    script = re.sub(rf'"{ASYNC_STAGES}": \[0\](, )?', "", script)
    return from_source(re.sub(r', scope="(shared|local)"', "", script))

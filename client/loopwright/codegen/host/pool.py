"""The threads that run the parallel loops of compiled programs, instead of the pool of TVM's runtime.

`pool.ll`, beside this file, says how they work. It is LLVM's assembly because the user's machine has TVM's LLVM, and
often no compiler. TVM's own pool waits for all its threads, and gives its core away while it waits: on two cores at a
load average of 12, ten loops of 0.6 µs took 80 ms in the mean, and 0.04 ms on this pool.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from string import Template
from typing import Any

import tvm_ffi

from loopwright.codegen.host import threads

INSTALLED = "loopwright.install_threads"
"""The function of this name is registered in a process with the pool."""
LIBRARY = "libloopwright_threads.so"
"""The pool in the ``lib`` of a packaged model."""
MOST_THREADS = 64
"""A bit of a word for each. With more, TVM's own pool runs the loops."""

_ARCHITECTURES = {
    "x86_64": {
        "triple": "x86_64-unknown-linux-gnu",
        "layout": "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
        "pause": "pause",
        "futex": "202",
    },
    "aarch64": {
        "triple": "aarch64-unknown-linux-gnu",
        "layout": "e-m:e-p270:32:32-p271:32:32-p272:64:64-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32",
        "pause": "isb",
        "futex": "98",
    },
}
"""``layout`` is that of LLVM 22, ``futex`` the number of the system call."""


def install() -> None:
    """Make programs that this process loads from now on run their loops on the pool. Call it once TVM is imported.

    The pool starts its threads with its first loop: as many as `loopwright.codegen.host.threads.configured` says, the
    launching thread included. A forked child has a pool of its own. On systems other than Linux, and with more than
    `MOST_THREADS` threads, TVM's pool stays.
    """
    if tvm_ffi.get_global_func(INSTALLED, allow_missing=True) is not None or not is_available():
        return
    function = module()["install"]
    function()
    tvm_ffi.register_global_func(INSTALLED, function)  # which keeps the code, as threads run it until the end


def is_available() -> bool:
    """Return whether the pool runs on this machine, with the threads that are configured."""
    here = sys.platform == "linux" and platform.machine() in _ARCHITECTURES
    return here and (threads.configured() or 1) <= MOST_THREADS


def module(architecture: str | None = None) -> Any:
    """Return the pool as a ``tvm.runtime.Module``, for this machine's architecture or for the given one."""
    from_file = tvm_ffi.get_global_func("ffi.Module.load_from_file.ll")
    template = Template(Path(__file__).with_name("pool.ll").read_text(encoding="utf-8"))
    code = template.substitute(_ARCHITECTURES[architecture or platform.machine()])
    # In memory: behind walls there is no folder for temporary files before a program runs.
    with os.fdopen(os.memfd_create("pool.ll"), "w", encoding="utf-8") as file:
        file.write(code)
        file.flush()
        return from_file(f"/proc/self/fd/{file.fileno()}", "ll")

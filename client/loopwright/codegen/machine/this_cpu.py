"""The target of this machine's CPU."""

from __future__ import annotations

import platform
from typing import Any

from tvm.target import Target, codegen

from loopwright.codegen.host import cpu
from loopwright.codegen.host.threads import usable_cores
from loopwright.codegen.machine import vector_width


def this_cpu() -> Target:
    """Return the target for which programs of this machine are built, with one thread for each usable core.

    The width of vectors is measured, which takes a tenth of a second, on processors with AVX-512.
    """
    vendor, flags = cpu.flags()
    target: dict[str, Any] = {"kind": "llvm", "num-cores": usable_cores()}
    if platform.machine() in ("x86_64", "AMD64"):
        target["mcpu"] = cpu.x86_generation(vendor, flags)
        if "avx512f" in flags:
            target["mattr"] = vector_width.attributes(target["mcpu"], vector_width.relative_speed(target["mcpu"]))
    else:
        target["mtriple"] = codegen.llvm_get_system_triple()
        target["mcpu"] = codegen.llvm_get_system_cpu()
    return Target(target)

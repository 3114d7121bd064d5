"""The executable of a model for a CPU: Relax functions as bytecode, and each PrimFunc compiled by itself, on all cores.

``relax.build`` compiles all PrimFuncs as one module of LLVM, on one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tvm
import tvm_ffi
from tvm import relax
from tvm.target import Target

from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.host.threads import usable_cores


def executable(
    mod: tvm.IRModule, target: Target, compiled: Callable[[tvm.IRModule], tvm.runtime.Module]
) -> relax.VMExecutable:
    """Return the executable of a module that is lowered for Relax's virtual machine, as ``relax.build`` makes it.

    Args:
        mod: the module after `loopwright.codegen.program.build.executable_passes`.
        target: an llvm target.
        compiled: compiles a module of PrimFuncs. Several threads call it at once.
    """
    attributes = dict(mod.attrs or {})
    builder = relax.ExecBuilder()
    rest = tvm.get_global_func("relax.VMCodeGen")(builder, mod)
    with ThreadPoolExecutor(usable_cores()) as pool:
        libraries = list(pool.map(compiled, _parts(rest)))
    others = [*libraries[1:], *attributes.get("external_mods", [])]
    constants = dict(attributes.get("const_name_to_constant", {}))
    link = tvm.get_global_func("relax.VMLink")
    return relax.VMExecutable(link(builder, target, libraries[0] if libraries else None, others, constants))


def _parts(mod: tvm.IRModule) -> Iterator[tvm.IRModule]:
    """Yield a module for each PrimFunc; one for all of them if one calls another."""
    functions = prim_funcs(mod)
    if any(_refers(func) for _, func in functions):
        yield tvm.IRModule(dict(functions), mod.attrs)
        return
    for var, func in functions:
        yield tvm.IRModule({var: func}, mod.attrs)


def _refers(func: tvm.tirx.PrimFunc) -> bool:
    found: list[Any] = []
    tvm_ffi.structural_walk(func.body, (tvm.ir.GlobalVar, found.append), order="pre")
    return bool(found)

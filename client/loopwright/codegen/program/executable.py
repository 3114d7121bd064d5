"""The executable of a model for a CPU: Relax functions as bytecode, and each PrimFunc compiled by itself, on all cores.

``relax.build`` compiles all PrimFuncs as one module of LLVM, on one core. Functions that were compiled before are only
linked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tvm
import tvm_ffi
from tvm import relax
from tvm.target import Target

from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.host.threads import usable_cores
from loopwright.codegen.weights.shared_weights import weights_apart


@dataclass(frozen=True, slots=True)
class Library:
    """Functions that were compiled before, by the names that Relax functions call: loaded, and as object code."""

    loaded: tvm.runtime.Module
    exported: tvm.runtime.Module


class Executable(relax.VMExecutable):
    """Runs libraries that are loaded, and exports their object code."""

    def __init__(
        self,
        running: tvm.runtime.Module,
        mod: tvm.IRModule,
        exported: Callable[[tvm.IRModule], tvm.runtime.Module],
    ) -> None:
        """Take what runs, the module that it was made of, and what makes what is exported of a module."""
        super().__init__(running)
        self._mod, self._made = mod, exported

    @cached_property
    def _exported(self) -> relax.VMExecutable:
        return relax.VMExecutable(self._made(self._mod))

    def export_library(self, file_name: str, **options: Any) -> Any:
        """Write a shared library, as ``relax.VMExecutable`` does."""
        return self._exported.export_library(file_name, **options)

    def with_weights_apart(self, least_bytes: int) -> tuple[relax.VMExecutable, list[tvm.runtime.Tensor]]:
        """Return an executable to export whose ``main`` takes weights behind its inputs, and these weights.

        They are the constants of so many bytes or more.
        """
        [(mod, weights)] = weights_apart([self._mod], least_bytes)
        return relax.VMExecutable(self._made(mod)), weights


def executable(
    mod: tvm.IRModule,
    target: Target,
    compiled: Callable[[tvm.IRModule], tvm.runtime.Module],
    libraries: Sequence[Library] = (),
) -> Executable:
    """Return the executable of a module that is lowered for Relax's virtual machine, as ``relax.build`` makes it.

    Args:
        mod: the module after `loopwright.codegen.program.build.executable_passes`.
        target: an llvm target.
        compiled: compiles a module of PrimFuncs. Several threads call it at once.
        libraries: have external functions that the module calls.
    """
    attributes = dict(mod.attrs or {})
    constants = dict(attributes.get("const_name_to_constant", {}))
    generate, link = (tvm.get_global_func(f"relax.{name}") for name in ("VMCodeGen", "VMLink"))
    builder = relax.ExecBuilder()
    rest = generate(builder, mod)
    with ThreadPoolExecutor(usable_cores()) as pool:
        parts = list(pool.map(compiled, _parts(rest)))

    def linked(builder: relax.ExecBuilder, others: Sequence[tvm.runtime.Module]) -> tvm.runtime.Module:
        first, *more = [*parts, *others] or [None]
        return link(builder, target, first, [*more, *attributes.get("external_mods", [])], constants)

    def exported(mod: tvm.IRModule) -> tvm.runtime.Module:
        another = relax.ExecBuilder()
        generate(another, mod)
        return linked(another, [each.exported for each in libraries])

    return Executable(linked(builder, [each.loaded for each in libraries]), mod, exported)


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

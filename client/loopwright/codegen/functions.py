"""The functions of a module."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import relax


def as_module(program: Any) -> tvm.IRModule:
    """Return an IRModule as it is; a PrimFunc as a module under its own name, or ``main``."""
    if isinstance(program, tvm.IRModule):
        return program
    name = str(program.attrs["global_symbol"]) if "global_symbol" in (program.attrs or {}) else "main"
    return tvm.IRModule({name: program})


def prim_funcs(mod: tvm.IRModule) -> list[tuple[tvm.ir.GlobalVar, tvm.tirx.PrimFunc]]:
    """Return the (GlobalVar, PrimFunc) pairs of a module, in order of name."""
    return _functions(mod, tvm.tirx.PrimFunc)


def used_prim_funcs(mod: tvm.IRModule) -> list[tuple[tvm.ir.GlobalVar, tvm.tirx.PrimFunc]]:
    """Return the PrimFuncs that Relax functions call; of a module without Relax functions all.

    Fusion leaves public functions over that nothing calls any more. Functions that are called to write into one of
    their inputs are left out: they are no workloads, as a second call does not find what the first one found.
    """
    if not has_relax(mod):
        return prim_funcs(mod)
    used: set[str] = set()
    writers: set[str] = set()
    in_place = tvm.ir.Op.get("relax.call_tir_inplace")

    def visit(node: object) -> None:
        if isinstance(node, tvm.ir.GlobalVar):
            used.add(str(node.name_hint))
        elif isinstance(node, relax.Call) and node.op.same_as(in_place):
            writers.add(str(node.args[0].name_hint))

    for _, func in relax_funcs(mod):
        relax.analysis.post_order_visit(func, visit)
    return [(var, func) for var, func in prim_funcs(mod) if str(var.name_hint) in used - writers]


def relax_funcs(mod: tvm.IRModule) -> list[tuple[tvm.ir.GlobalVar, relax.Function]]:
    """Return the (GlobalVar, relax.Function) pairs of a module, in order of name."""
    return _functions(mod, relax.Function)


def has_relax(mod: tvm.IRModule) -> bool:
    return any(isinstance(func, relax.Function) for func in mod.functions.values())


def write_only(func: tvm.tirx.PrimFunc) -> tuple[bool, ...]:
    """Return for each parameter whether the function writes it without reading it first, as its blocks declare."""
    blocks: list[tvm.s_tir.SBlock] = []
    tvm_ffi.structural_walk(func.body, (tvm.s_tir.SBlock, blocks.append), order="post")
    reads = [region.source for block in blocks for region in block.reads]
    writes = [region.source for block in blocks for region in block.writes]
    return tuple(
        any(param.same_as(buffer) for buffer in writes) and not any(param.same_as(buffer) for buffer in reads)
        for param in func.params
    )


def _functions(mod: tvm.IRModule, kind: type) -> list[tuple[Any, Any]]:
    pairs = [(var, func) for var, func in mod.functions.items() if isinstance(func, kind)]
    return sorted(pairs, key=lambda pair: str(pair[0].name_hint))

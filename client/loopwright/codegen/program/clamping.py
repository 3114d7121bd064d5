"""Accesses that data decides, such as those of an embedding, kept inside of their buffers.

TVM's operators trust the indices that they are given: with wrong ones, a program reads and writes what is beside the
buffer. In models that Loopwright lowers, it meets the first or the last element instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, Range, TensorLoad, Var
from tvm.s_tir import SBlock, SBlockRealize

from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.bounds import depends_on_data


def clamp(mod: tvm.IRModule) -> tvm.IRModule:
    """Return the module with clamped indices in its PrimFuncs, where data or windows of different sizes decide them."""
    clamped = mod.clone()
    for var, func in prim_funcs(mod):
        body = tvm_ffi.structural_map(func.body, (SBlockRealize, _realize), order="post")
        loose = _loose(body)

        def load(node: TensorLoad, loose: set[Var] = loose) -> Any:
            indices = _inside(node.source, node.indices, loose)
            return node if indices is None else tirx.BufferLoad(node.source, indices, node.span)

        def store(node: tirx.BufferStore, loose: set[Var] = loose) -> Any:
            indices = _inside(node.buffer, node.indices, loose)
            return node if indices is None else tirx.BufferStore(node.buffer, node.value, indices, span=node.span)

        for kind, change in ((TensorLoad, load), (tirx.BufferStore, store)):
            body = tvm_ffi.structural_map(body, (kind, change), order="post")
        if not body.same_as(func.body):
            clamped.update_func(var, func.with_body(body))
    return clamped


def _loose(body: Any) -> set[Var]:
    """Return the variables of axes whose extents depend on others."""
    blocks: list[SBlock] = []
    tvm_ffi.structural_walk(body, (SBlock, blocks.append), order="post")
    axes = [axis for block in blocks for axis in block.iter_vars]
    return {axis.var for axis in axes if not isinstance(axis.dom.extent, tirx.IntImm)}


def _contains(index: Expr, variables: set[Var]) -> bool:
    found: list[Var] = []
    tvm_ffi.structural_walk(index, (Var, found.append), order="pre")
    return any(var in variables for var in found)


def _inside(buffer: Var, indices: Sequence[Expr], loose: set[Var]) -> list[Expr] | None:
    """Return the indices, clamped where it is not known that they are inside; None if nothing changes."""
    changed = False
    inside = []
    for index, extent in zip(indices, buffer.shape, strict=True):
        unknown = depends_on_data(index) or (loose and _contains(index, loose))
        if unknown and isinstance(extent, tirx.IntImm) and not _is_inside(index, int(extent)):
            last = tirx.const(int(extent) - 1, index.ty.dtype)
            index = tirx.max(tirx.min(index, last), tirx.const(0, index.ty.dtype))
            changed = True
        inside.append(index)
    return inside if changed else None


def _is_inside(index: Expr, extent: int) -> bool:
    bound = tvm.sym.Analyzer().const_int_bound(index)
    return 0 <= bound.min_value <= bound.max_value < extent


def _realize(realize: SBlockRealize) -> Any:
    """Mend the domains of axes with a single value, of which TVM writes another extent (in adaptive pooling)."""
    block = realize.block
    axes = list(block.iter_vars)
    for place, (axis, value) in enumerate(zip(axes, realize.iter_values, strict=True)):
        if value.same_as(axis.dom.min) and not isinstance(axis.dom.extent, tirx.IntImm):
            one = Range.from_min_extent(axis.dom.min, tirx.const(1, value.ty.dtype))
            axes[place] = tirx.IterVar(one, axis.var, axis.iter_type, axis.thread_tag)
    if all(new.same_as(old) for new, old in zip(axes, block.iter_vars, strict=True)):
        return realize
    mended = SBlock(
        axes,
        block.reads,
        block.writes,
        block.name_hint,
        block.body,
        block.init,
        block.alloc_buffers,
        block.match_buffers,
        block.annotations,
    )
    return SBlockRealize(realize.iter_values, realize.predicate, mended, realize.span)

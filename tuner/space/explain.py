"""Why no rule of Loopwright applies to a function: which one comes nearest, and what the function lacks for it."""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import tirx
from tvm.target import Target

from loopwright.codegen.rules import CPU_RULES
from loopwright.codegen.rules.analysis.contraction import Contraction
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, found, is_var
from loopwright.codegen.rules.analysis.rule import MachineLimits
from loopwright.codegen.rules.analysis.sketches import Sketches

_TYPES = {"conv_direct": ("float32", "float64", "int32"), "register_tile": ("float32", "int32")}
"""Of sums that rules take; those of integers have rules of their own."""


def without_rule(mod: tvm.IRModule, target: Target) -> str | None:
    """Return why only TVM's own rules schedule a function for a CPU; None if a rule of `CPU_RULES` applies to it.

    None, too, for another target: no rule is for its default space.
    """
    if target.kind.name != "llvm":
        return None
    program = AnalysedProgram.of(mod)
    if program is None:
        return _shape_of_loops(mod)
    if Sketches(mod, MachineLimits.of(target), CPU_RULES).traces:
        return None
    reductions = program.reductions
    if not reductions:
        return "elementwise is nearest, whose last block writes an output, and the function's does not"
    products = [block for block in reductions if _is_product(block)]
    if products:
        return _product(program, products)
    return _rows(program, reductions)


def _shape_of_loops(mod: tvm.IRModule) -> str:
    """Return why the rules cannot read a function."""
    blocks: list[tvm.s_tir.SBlock] = []
    tvm_ffi.structural_walk(mod["main"].body, (tvm.s_tir.SBlock, blocks.append), order="pre")
    for block in blocks[1:]:
        stores = len(found(block.body, tirx.BufferStore))
        if stores != 1:
            return f"rules take blocks with one store, and block {block.name_hint} has {stores}"
    return "rules take a sequence of blocks with static extents, none of them within another"


def _product(program: AnalysedProgram, products: list[Block]) -> str:
    """Return what a function with sums of products lacks."""
    block = products[0]
    name = "conv_direct" if len(block.reduced) > 1 else "register_tile"
    others = [each.name for each in program.reductions if each is not block]
    if others:
        return f"{name} is nearest, which takes one reduction, and the function also has {', '.join(others)}"
    if block.dtype not in _TYPES[name]:
        own = " or ".join(dtype for dtype in _TYPES[name] if dtype != "int32")
        return f"{name} is nearest, whose sums are in {own}, and the function's are in {block.dtype}"
    if len(program.outputs) > 1:
        return f"{name} is nearest, which takes one output, and the function has {len(program.outputs)}"
    contraction = Contraction.of(program, block.dtype)
    if contraction is not None:
        size = f"{contraction.rows} x {contraction.columns} x {contraction.depth}"
        return f"{name} is nearest, and takes no product of {size} of {' and '.join(contraction.operands)}"
    return (
        f"{name} is nearest, and block {block.name} reads its operands in another order, or from one tensor: "
        "no axis of its result is one of vectors"
    )


def _rows(program: AnalysedProgram, reductions: list[Block]) -> str:
    """Return what a function that reduces, but multiplies nothing, lacks."""
    nearest = "row_reduce and column_reduce are nearest, which"
    for block in program.blocks:
        if block.dtype != "float32":
            return f"row_reduce is nearest, which computes in float32, and block {block.name} computes in {block.dtype}"
    for block in reductions:
        if block.operation is None or block.operation == "min":
            return f"{nearest} sum or take the maximum, and block {block.name} reduces by something else"
    shapes = {tuple(extent for _, extent in block.spatial if extent > 1) for block in reductions}
    if len(shapes) > 1:
        listed = " and ".join(sorted(" x ".join(map(str, shape)) or "1" for shape in shapes))
        return f"{nearest} take reductions to one shape, and the function reduces to {listed}"
    for block in reductions:
        last = block.reduced[-1][0]
        if not any(is_var(load.indices[-1], last) for load in block.loads):
            return f"{nearest} reduce the last axis, or read vectors along it, and block {block.name} does neither"
    return f"{nearest} take rows that every block computes alone, and the function has blocks of other shapes"


def _is_product(block: Block) -> bool:
    return block.operation == "sum" and isinstance(block.term, tirx.Mul) and len(block.loads) > 1

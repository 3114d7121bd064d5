"""Exact products of matrices of bytes in int32, with AVX2 or AVX-512: two products a lane in one instruction.

The left operand is widened to int16 first, once for all columns. VNNI multiplies uint8 and int8 as they are, four a
lane (`vnni`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tvm.s_tir import Schedule

from loopwright.codegen.cpu import dot_product, maddwd
from loopwright.codegen.rules.analysis import product_tile
from loopwright.codegen.rules.analysis.contraction import Contraction
from loopwright.codegen.rules.analysis.product_tile import Dot, ProductTile
from loopwright.codegen.rules.analysis.program import AnalysedProgram, is_var
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits

_UNROLL = 2
"""Steps in the body of a loop of the seeds. With 4, LLVM spills some of the sums of the largest tiles."""


class Maddwd:
    name = "maddwd"
    version = 2

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        contraction = Contraction.of(program, "int32")
        if contraction is None or not machine.has_maddwd or maddwd.intrinsic(*contraction.operands) is None:
            return ()
        if machine.has_vnni and contraction.operands == dot_product.OPERANDS:
            return ()
        if not is_var(contraction.left.indices[-1], contraction.block.reduced[0][0]):
            return ()
        # Packing takes longer than the product of one row, and padding than that of few columns.
        if contraction.columns < machine.lanes // 2 or (contraction.rows < 2 and not contraction.right_is_weight):
            return ()
        return product_tile.knobs(contraction, packs=True)

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        contraction = Contraction.required(program, "int32")
        for values in product_tile.seeds(contraction, _limits(machine), packs=True, loads=product_tile.WIDENED_LOADS):
            yield {**values, "unroll": _UNROLL}

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        contraction = Contraction.required(program, "int32")
        name = maddwd.intrinsic(*contraction.operands, machine.lanes)
        assert name is not None, "the rule has no knobs for this function"
        maddwd.register(name)
        dot = Dot(name, maddwd.GROUP, maddwd.WIDE)
        ProductTile(schedule, program, contraction, _limits(machine), dot).apply(values)


def _limits(machine: MachineLimits) -> MachineLimits:
    """Return the limits of a tile: a register is for products that are yet to be added."""
    return replace(machine, registers=machine.registers - 1)

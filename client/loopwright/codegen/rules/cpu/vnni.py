"""Products of uint8 and int8 matrices in int32: four products a lane in one instruction (AVX-512 VNNI, AVX-VNNI)."""

from __future__ import annotations

from collections.abc import Iterable

from tvm.s_tir import Schedule

from loopwright.codegen.cpu import dot_product
from loopwright.codegen.rules.analysis import product_tile
from loopwright.codegen.rules.analysis.contraction import Contraction
from loopwright.codegen.rules.analysis.product_tile import Dot, ProductTile
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits


class Vnni:
    name = "vnni"
    version = 2

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        contraction = Contraction.of(program, "int32")
        if contraction is None or contraction.operands != dot_product.OPERANDS or not machine.has_vnni:
            return ()
        return product_tile.knobs(contraction, packs=True)

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        return product_tile.seeds(Contraction.required(program, "int32"), machine, packs=True)

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        dot = Dot(dot_product.intrinsic(machine.lanes), dot_product.GROUP)
        dot_product.register(dot.intrinsic)
        ProductTile(schedule, program, Contraction.required(program, "int32"), machine, dot).apply(values)

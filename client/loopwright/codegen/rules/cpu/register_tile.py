"""Products of float32 matrices: a tile of the result stays in registers while the whole sum runs over it."""

from __future__ import annotations

from collections.abc import Iterable

from tvm.s_tir import Schedule

from loopwright.codegen.rules.analysis import product_tile
from loopwright.codegen.rules.analysis.contraction import Contraction
from loopwright.codegen.rules.analysis.product_tile import ProductTile
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits


class RegisterTile:
    name = "register_tile"
    version = 2

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        contraction = Contraction.of(program)
        if contraction is None or contraction.columns < machine.lanes // 2:
            return ()
        if contraction.rows < 2 and not contraction.right_is_weight:
            return ()
        return product_tile.knobs(contraction, packs=False)

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        loads = product_tile.float_loads(machine)
        return product_tile.seeds(
            Contraction.required(program), machine, packs=False, loads=loads, sums=product_tile.FLOAT_SUMS
        )

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        ProductTile(schedule, program, Contraction.required(program), machine).apply(values)

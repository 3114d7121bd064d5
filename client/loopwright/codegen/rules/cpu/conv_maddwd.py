"""Exact convolutions of bytes in int32 with the channels last: as `conv_direct`, two products a lane (`maddwd`).

The padded image is made in int16. VNNI multiplies uint8 and int8 as they are, four a lane (`conv_vnni`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tvm.s_tir import Schedule

from loopwright.codegen.cpu import dot_product, maddwd
from loopwright.codegen.rules.analysis import conv_dot
from loopwright.codegen.rules.analysis.conv_dot import ByteConvolution
from loopwright.codegen.rules.analysis.product_tile import WIDENED_LOADS, Dot
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits


class ConvMaddwd:
    name = "conv_maddwd"
    version = 3

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        convolution = ByteConvolution.of(program, machine)
        if convolution is None or not machine.has_maddwd or maddwd.intrinsic(*convolution.operands) is None:
            return ()
        if machine.has_vnni and convolution.operands == dot_product.OPERANDS:
            return ()
        return conv_dot.knobs(convolution, _limits(machine))

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        return conv_dot.seeds(ByteConvolution.required(program, machine), _limits(machine), WIDENED_LOADS)

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        convolution = ByteConvolution.required(program, machine)
        name = maddwd.intrinsic(*convolution.operands, convolution.lanes)
        assert name is not None, "the rule has no knobs for this function"
        maddwd.register(name)
        dot = Dot(name, maddwd.GROUP, maddwd.WIDE)
        conv_dot.apply(schedule, program, convolution, _limits(machine), dot, values)


def _limits(machine: MachineLimits) -> MachineLimits:
    """Return the limits of a tile: a register is for products that are yet to be added."""
    return replace(machine, registers=machine.registers - 1)

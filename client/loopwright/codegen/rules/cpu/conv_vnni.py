"""Convolutions of uint8 and int8 in int32 with the channels last: as `conv_direct`, four products a lane (`vnni`)."""

from __future__ import annotations

from collections.abc import Iterable

from tvm.s_tir import Schedule

from loopwright.codegen.cpu import dot_product
from loopwright.codegen.rules.analysis import conv_dot
from loopwright.codegen.rules.analysis.conv_dot import ByteConvolution
from loopwright.codegen.rules.analysis.product_tile import Dot
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits

_LOADS = (1.0, 1.0)
"""Costs of loads, for `conv_dot.seeds`. Not tuned."""


class ConvVnni:
    name = "conv_vnni"
    version = 2

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        convolution = ByteConvolution.of(program, machine)
        if convolution is None or convolution.operands != dot_product.OPERANDS or not machine.has_vnni:
            return ()
        return conv_dot.knobs(convolution, machine)

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        return conv_dot.seeds(ByteConvolution.required(program, machine), machine, _LOADS)

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        convolution = ByteConvolution.required(program, machine)
        dot = Dot(dot_product.intrinsic(convolution.lanes), dot_product.GROUP)
        dot_product.register(dot.intrinsic)
        conv_dot.apply(schedule, program, convolution, machine, dot, values)

"""What every engine runs: a PyTorch module in evaluation mode, and the shapes of its inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch


class Kind(StrEnum):
    """``LOW`` are single operators of a low precision, which have requirements of their own."""

    OPERATOR = "operator"
    LOW = "low precision"
    MODEL = "model"


class Precision(StrEnum):
    """Of inputs and weights. Products of ``INT8`` are exact sums in int32."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    INT8 = "int8"
    QDQ = "int8 between f32"
    """Inputs are rounded to uint8, and outputs, too; weights are int8."""
    QDQ_MODEL = "int8 throughout"
    """Tensors are rounded to uint8 by ranges that were calibrated; weights are int8."""
    DYNAMIC = "int8 products"
    """What products take is rounded to uint8 by its own range; weights are int8."""
    INT4 = "int4 weights"
    INT4_INT8 = "int4 weights, int8 rows"
    """Rows are rounded to int8, with a scale for each block."""


TOLERANCE = {
    Precision.F32: 1e-3,
    Precision.F16: 1e-2,
    Precision.BF16: 3e-2,
    Precision.INT8: 0.0,
    Precision.QDQ: 1.5e-2,
    Precision.QDQ_MODEL: 6e-2,
    Precision.DYNAMIC: 4e-2,
    Precision.INT4: 1e-3,
    Precision.INT4_INT8: 3e-2,
}
"""Largest difference from the reference over the reference's largest magnitude. The sums of an engine differ in order;
f16 and bf16 have 11 and 8 bits of precision, and outputs are rounded to them; a step of uint8 is 1 / 255, and in
a model some elements of each tensor are one step off."""
DTYPES = {Precision.F16: torch.float16, Precision.BF16: torch.bfloat16}
"""Of weights and inputs, if it is not float32."""


@dataclass(frozen=True, slots=True)
class Case:
    """A row of the report.

    Attributes:
        family: What the module computes, in the words of the report.
        make: Makes the module. Its parameters are drawn from PyTorch's generator.
        shapes: Of the inputs, in order; they are drawn from a standard normal distribution.
        with_stock: Whether stock MetaSchedule tunes it too.
    """

    name: str
    family: str
    make: Callable[[], torch.nn.Module]
    shapes: tuple[tuple[int, ...], ...]
    kind: Kind = Kind.OPERATOR
    precision: Precision = Precision.F32
    with_stock: bool = False

    @property
    def tolerance(self) -> float:
        return TOLERANCE[self.precision]

    def module(self) -> torch.nn.Module:
        """Return the module in evaluation mode with random weights and statistics, the same ones at each call."""
        torch.manual_seed(0)
        module = self.make().eval()
        for part in module.modules():
            if isinstance(part, torch.nn.BatchNorm2d):
                _draw_statistics(part)
        for parameter in module.parameters():
            parameter.requires_grad_(False)
        return module.to(DTYPES[self.precision]) if self.precision in DTYPES else module

    def inputs(self) -> tuple[torch.Tensor, ...]:
        """Return the inputs, the same ones at each call."""
        generator = torch.Generator().manual_seed(1)
        return tuple(self._input(shape, generator) for shape in self.shapes)

    def _input(self, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
        if self.precision is Precision.INT8:
            # Without the sign bit, the same bytes are valid for engines that multiply unsigned or signed numbers.
            return torch.randint(0, 128, shape, generator=generator, dtype=torch.int8)
        drawn = torch.randn(shape, generator=generator)
        return drawn.to(DTYPES.get(self.precision, drawn.dtype))


def _draw_statistics(norm: Any) -> None:
    """Draw what a trained normalisation would have: otherwise it would be the identity, which an engine may remove."""
    torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
    torch.nn.init.normal_(norm.bias, std=0.1)
    norm.running_mean.normal_(std=0.1)
    norm.running_var.uniform_(0.5, 1.5)

"""Rows that are rounded to int8 for products with weights of few bits in blocks: what they become, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from tvm import relax

from loopwright.applying.lookup import lower
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.build import compile_module
from loopwright.frontends import to_program
from loopwright.model import Model
from tests.support.draws import numpy_draws
from tests.support.rule_programs import TARGET

COLUMNS, DEPTH, SIZE = 24, 64, 16
DRAWN = numpy_draws()


class Blocks(nn.Module):
    """A linear layer with a scale for each 16 of its depth, of 8 bits, or of 4, two in a byte."""

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits
        self.numbers = DRAWN.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (COLUMNS, DEPTH)).astype("int8")
        unsigned = (self.numbers + 8).astype("uint8")
        stored = unsigned[:, ::2] | (unsigned[:, 1::2] << 4) if bits == 4 else self.numbers
        self.register_buffer("weight", torch.from_numpy(stored))
        self.register_buffer("scale", torch.rand(COLUMNS, DEPTH // SIZE, 1) / 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.bits == 4:
            numbers = torch.stack([self.weight & 15, self.weight >> 4], -1).to(x.dtype) - 8
        else:
            numbers = self.weight.to(x.dtype)
        values = numbers.reshape(COLUMNS, -1, SIZE) * self.scale
        return nn.functional.linear(x, values.reshape(COLUMNS, DEPTH))


def called(model: nn.Module, rows: Any, *, permitted: bool = True) -> tuple[set[str], Any]:
    """Return the dtypes of what functions take, and what a model's program computes."""
    source = Model(model.eval(), example_inputs=(torch.from_numpy(rows),), int8_activations=permitted)
    mod = lower(to_program(source), TARGET)
    main = relax.VirtualMachine(compile_module(mod, TARGET), tvm.cpu())["main"]
    dtypes = {str(param.dtype) for _, func in prim_funcs(mod) for param in func.params}
    return dtypes, main(tvm.runtime.tensor(rows)).numpy()


def rounded(rows: Any) -> Any:
    blocks = rows.astype("float64").reshape(len(rows), -1, SIZE)
    largest = np.abs(blocks).max(-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.where(largest > 0, np.rint(blocks * 127 / largest) * largest / 127, 0).reshape(rows.shape)


@pytest.mark.parametrize(("bits", "count"), [(4, 1), (4, 7), (8, 3)])
def test_blocks_of_rows_are_multiples_of_a_127th_of_their_largest_magnitude(bits: int, count: int) -> None:
    model, rows = Blocks(bits), DRAWN.standard_normal((count, DEPTH)).astype("float32")
    rows[0, SIZE : 2 * SIZE] = 0
    rows[-1, :SIZE] *= 1e20
    dtypes, found = called(model, rows)
    weight = (model.numbers.reshape(COLUMNS, -1, SIZE) * model.scale.numpy()).reshape(COLUMNS, DEPTH)
    assert "int8" in dtypes
    # What cancels in integers leaves rounding errors in the expected sum, as large as its terms are.
    rounding = 1e-6 * np.abs(rounded(rows)) @ np.abs(weight).T
    expected = rounded(rows) @ weight.T
    assert (np.abs(found - expected) <= 1e-4 * np.abs(expected) + 1e-4 + rounding).all()
    assert (found != (rows @ weight.T)).any()


def test_nan_and_infinities_go_into_the_results_of_their_rows_alone() -> None:
    model, rows = Blocks(4), DRAWN.standard_normal((3, DEPTH)).astype("float32")
    rows[0, 3], rows[1, 40] = np.nan, -np.inf
    _, found = called(model, rows)
    assert np.isnan(found[0]).all()
    assert not np.isfinite(found[1]).any()
    assert np.isfinite(found[2]).all()


def test_what_is_not_permitted_or_has_no_blocks_stays_exact() -> None:
    rows = DRAWN.standard_normal((2, DEPTH)).astype("float32")
    dtypes, _ = called(Blocks(4), rows, permitted=False)
    assert "int8" not in dtypes
    layer = nn.Linear(DEPTH, COLUMNS)
    dtypes, found = called(layer, rows)
    assert dtypes == {"float32"}
    np.testing.assert_allclose(found, layer(torch.from_numpy(rows)).detach().numpy(), atol=1e-5)

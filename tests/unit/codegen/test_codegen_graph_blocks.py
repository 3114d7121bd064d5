"""Weights with a scale for each block: which become sums of blocks, and that these are the product."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from loopwright.codegen.functions import prim_funcs
from tests.support.draws import torch_draws
from tests.support.models import Calls, called, check, lowered, run

COLUMNS, DEPTH, SIZE = 48, 96, 32
DRAWN = torch_draws()
ROWS = torch.randn(3, DEPTH, generator=DRAWN)


class Decoded(nn.Module):
    """A product with a weight of some bits, ``[columns, depth]``, that is decoded as people write it."""

    def __init__(self, bits: int, zeros: str, size: int = SIZE) -> None:
        super().__init__()
        blocks = DEPTH // size
        self.bits, self.zeros, self.size = bits, zeros, size
        numbers = torch.randint(0, 2**bits, (COLUMNS, DEPTH), generator=DRAWN, dtype=torch.uint8)
        stored = numbers if bits == 8 else numbers[:, ::2] | (numbers[:, 1::2] << 4)
        self.register_buffer("weight", stored)
        self.register_buffer("scale", torch.rand(COLUMNS, blocks, generator=DRAWN) + 0.5)
        self.register_buffer("zero", torch.randint(0, 2**bits, (COLUMNS, blocks), generator=DRAWN, dtype=torch.uint8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        numbers = self.weight.to(x.dtype)
        if self.bits == 4:
            numbers = torch.stack([self.weight & 15, self.weight >> 4], -1).reshape(COLUMNS, DEPTH).to(x.dtype)
        numbers = numbers.reshape(COLUMNS, DEPTH // self.size, self.size)
        if self.zeros == "each":
            numbers = numbers - self.zero[..., None].to(x.dtype)
        elif self.zeros == "one":
            numbers = numbers - 8
        return nn.functional.linear(x, (numbers * self.scale[..., None].to(x.dtype)).reshape(COLUMNS, DEPTH))


def has_blocks(model: nn.Module, rows: torch.Tensor) -> bool:
    """Compare a lowered model with exact arithmetic, and return whether it sums blocks."""
    mod = lowered(model, rows)
    with torch.no_grad():
        exact = model(rows.double()).numpy()
    error = np.abs(run(mod, rows) - exact).max() / np.abs(exact).max()
    assert error < 1e-6
    return any('sblock("matmul_blocks")' in func.script() for _, func in prim_funcs(mod))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", ["none", "one", "each"])
def test_a_product_with_blocks_sums_each_block_by_itself(bits: int, zeros: str) -> None:
    assert has_blocks(Decoded(bits, zeros), ROWS)


@pytest.mark.parametrize("zeros", ["one", "each"])
def test_infinities_and_nan_come_out_as_pytorch_has_them(zeros: str) -> None:
    model, rows = Decoded(4, zeros), ROWS.clone()
    rows[0, 5], rows[1, 40], rows[2, 70] = torch.inf, -torch.inf, torch.nan
    with torch.no_grad():
        expected = model(rows).numpy()
    assert np.isinf(expected).any()
    np.testing.assert_allclose(run(lowered(model, rows), rows), expected, rtol=1e-5)


def test_scales_of_a_block_and_a_vector_of_columns_are_stored_as_neighbours() -> None:
    mod = lowered(Decoded(4, "each"), ROWS)
    assert called(mod) == ["matmul"]
    [(_, func)] = prim_funcs(mod)
    shapes = {tuple(map(int, param.shape)) for param in func.params if str(param.dtype) == "float32"}
    assert shapes == {(3, DEPTH), (COLUMNS // 16, DEPTH // SIZE, 16), (3, COLUMNS)}


def test_what_follows_a_product_of_one_row_is_a_part_of_its_function() -> None:
    model = Calls(lambda x, y, product: y + product(x), product=Decoded(4, "each"))
    assert called(check(model, torch.randn(1, 1, DEPTH), torch.randn(1, 1, COLUMNS))) == ["fused_matmul_add"]


@pytest.mark.parametrize("size", [4, DEPTH])
def test_a_scale_stays_in_the_sum_of_short_blocks_and_of_whole_columns(size: int) -> None:
    assert not has_blocks(Decoded(8, "one", size), ROWS)


def test_batches_of_rows_are_multiplied_as_rows_are() -> None:
    assert has_blocks(Decoded(4, "each"), torch.randn(2, 3, DEPTH, generator=DRAWN))

"""Convolutions and poolings as their rules schedule them first, compared with PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import nn

from tests.support.draws import torch_draws
from tests.support.models import check_first_choices

DRAWN = torch_draws()
DOUBLES = [
    ("conv_direct", (2, 5, 9, 7), nn.Conv2d(5, 9, (3, 2), (2, 1), (1, 2), dilation=(1, 3))),
    pytest.param("conv_direct", (1, 6, 8, 12), nn.Conv2d(6, 15, 3, padding=1, groups=3), marks=pytest.mark.whole),
    pytest.param("conv_direct", (2, 3, 29), nn.Conv1d(3, 7, 5, 3), marks=pytest.mark.whole),
    pytest.param("conv_direct", (1, 3, 4, 5, 6), nn.Conv3d(3, 10, (2, 3, 2), padding=1), marks=pytest.mark.whole),
    pytest.param(
        "conv_direct", (1, 5, 6, 7), nn.ConvTranspose2d(5, 6, 3, 2, 1, output_padding=1), marks=pytest.mark.whole
    ),
    ("window_reduce", (2, 5, 9, 13), nn.Conv2d(5, 5, (3, 5), (1, 2), 2, groups=5)),
    pytest.param("window_reduce", (2, 3, 11, 17), nn.MaxPool2d(3, 2, 1), marks=pytest.mark.whole),
    ("column_reduce", (2, 12, 9, 3), nn.Conv2d(12, 12, 3, padding=1, groups=12)),
]
TRANSPOSED = [
    ("conv_direct", (1, 12, 5, 6), nn.ConvTranspose2d(12, 24, 3, (2, 3), 1, output_padding=(1, 2), groups=3)),
    ("column_reduce", (2, 13, 5, 6), nn.ConvTranspose2d(13, 13, (3, 4), 2, 1, groups=13)),
    pytest.param(
        "conv_direct", (2, 6, 7), nn.ConvTranspose1d(6, 8, 5, 3, 2, output_padding=1, groups=2), marks=pytest.mark.whole
    ),
    pytest.param(
        "conv_direct",
        (2, 4, 6, 5),
        nn.ConvTranspose2d(4, 6, 3, (1, 2), (3, 0), dilation=(2, 1), groups=2),
        marks=pytest.mark.whole,
    ),
    ("conv_direct", (2, 6, 3, 2, 5), nn.ConvTranspose3d(6, 5, 3, (2, 1, 2), 1, output_padding=(1, 0, 1))),
]


def check(rule: str, shape: Sequence[int], model: nn.Module, dtype: torch.dtype) -> None:
    """Compare a model of one function with PyTorch, on random numbers, an infinity and NaN."""
    x = torch.randn(*shape, generator=DRAWN, dtype=dtype)
    x[0, 1][(1,) * (len(shape) - 2)], x[-1, 2][(0,) * (len(shape) - 2)] = torch.inf, torch.nan
    for parameter in model.parameters():
        nn.init.normal_(parameter, generator=DRAWN)
    tolerance = 1e-10 if dtype == torch.float64 else 1e-4
    assert check_first_choices(model.to(dtype), x, rtol=tolerance, atol=tolerance) == [rule]


@pytest.mark.parametrize(("rule", "shape", "model"), DOUBLES)
def test_doubles_are_scheduled_as_float32(rule: str, shape: Sequence[int], model: nn.Module) -> None:
    check(rule, shape, model, torch.float64)


@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.whole)])
@pytest.mark.parametrize(("rule", "shape", "model"), TRANSPOSED)
def test_transposed_convolutions_are_scheduled(
    rule: str, shape: Sequence[int], model: nn.Module, dtype: torch.dtype
) -> None:
    check(rule, shape, model, dtype)

"""A convolution pads its input itself, wherever a model has the zeros."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.support.models import Calls, called, check

X = torch.randn(1, 6, 9, 8, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize(
    "convolution",
    [
        nn.Conv2d(6, 6, 3, 2, groups=6),
        nn.Conv2d(6, 12, (1, 3), padding=(2, 0), dilation=(1, 2)),
        nn.Conv2d(6, 8, 3, padding=1),
    ],
)
def test_zeros_around_images_are_the_padding_of_the_convolution(convolution: nn.Module) -> None:
    padded = nn.Sequential(nn.ReLU(), nn.ZeroPad2d((0, 1, 2, 3)), convolution, nn.ReLU())
    assert not any("pad" in name for name in called(check(padded, X)))


def test_lines_are_padded_so_and_both_uses_of_a_padded_image() -> None:
    line = nn.Conv1d(9, 4, 3)
    check(Calls(lambda x, line: line(functional.pad(x[:, 0], (2, 0))), line=line), X)
    twice = Calls(
        lambda x, first, second: first(y := functional.pad(x, (1, 0, 0, 1))) + second(y),
        first=nn.Conv2d(6, 4, 3),
        second=nn.Conv2d(6, 4, 3),
    )
    assert not any("pad" in name for name in called(check(twice, X)))


def test_other_values_and_other_axes_stay() -> None:
    kept = {
        "ones": lambda x, c: c(functional.pad(x, (1, 1), value=1.0)),
        "channels": lambda x, c: c(functional.pad(x[:, :4], (0, 0, 1, 0, 1, 1))),
        "cut": lambda x, c: c(functional.pad(x, (-1, 2))),
        "edges": lambda x, c: c(functional.pad(x, (1, 1, 1, 1), mode="replicate")),
    }
    for function in kept.values():
        check(Calls(function, c=nn.Conv2d(6, 4, 3)), X)

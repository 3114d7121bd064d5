"""Squeeze and excite in few passes over the image: a mean where it is written, factors where it is read."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.support.models import Calls, called, check

X = torch.randn(1, 3, 26, 21, generator=torch.Generator().manual_seed(3))


class Squeezed(nn.Module):
    """Convolutions before and after a depthwise one with ``channels`` channels, whose result has weights."""

    def __init__(self, channels: int, outputs: int, *, is_flat: bool = False, is_read_twice: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(3, channels, 3, 2)
        self.depthwise = nn.Conv2d(channels, channels, 5, padding=2, groups=channels)
        self.squeeze, self.excite = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)
        self.last = nn.Conv2d(channels, outputs, 1)
        self.is_flat, self.is_read_twice = is_flat, is_read_twice

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.silu(self.depthwise(nn.functional.hardswish(self.first(x))))
        mean = x.mean((2, 3))[:, :, None, None] if self.is_flat else x.mean((3, 2), keepdim=True)
        scaled = x * torch.sigmoid(self.excite(torch.relu(self.squeeze(mean))))
        y: torch.Tensor = self.last(scaled)
        return y + scaled if self.is_read_twice else y


@pytest.mark.parametrize("is_flat", [False, pytest.param(True, marks=pytest.mark.whole)])
def test_a_mean_is_a_result_of_the_convolution_and_factors_are_a_part_of_the_next(is_flat: bool) -> None:
    names = called(check(Squeezed(8, 6, is_flat=is_flat), X))
    assert [name for name in names if name.endswith("_mean")] == ["fused_conv2d_add_tir_sigmoid_multiply_mean"]
    assert len(names) == 5
    assert names[-1].startswith("fused_scaled_conv2d_add")


def test_a_mean_is_also_the_result_of_a_model() -> None:
    torch.manual_seed(0)
    convolutions = {"first": nn.Conv2d(3, 12, 3), "depthwise": nn.Conv2d(12, 12, 3, groups=12)}
    model = Calls(lambda x, first, depthwise: torch.relu(depthwise(torch.relu(first(x)))).mean((2, 3)), **convolutions)
    assert called(check(model, X))[-1] == "fused_conv2d_add_relu_mean"


def test_factors_of_what_others_read_and_of_small_images_are_computed_before() -> None:
    for model in (Squeezed(8, 8, is_read_twice=True), Squeezed(8, 100 * 8)):
        assert not any("scaled" in name for name in called(check(model, X)))


def test_means_of_other_axes_channels_and_functions_stay() -> None:
    torch.manual_seed(0)
    first, depthwise = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 6, 3, groups=6)
    models = (
        Squeezed(7, 6),  # channels that no vector is full of
        Calls(lambda x, first, depthwise: depthwise(first(x)).mean(3), first=first, depthwise=depthwise),
        Calls(lambda x, first: (y := torch.relu(first(x))) * y.mean((2, 3), keepdim=True), first=first),
    )
    for model in models:
        assert not any(name.endswith("_mean") for name in called(check(model, X)))

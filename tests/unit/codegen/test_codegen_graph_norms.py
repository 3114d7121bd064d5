"""Normalisations and softmax are one function each, with what follows them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.support.models import Calls, called, check


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (nn.RMSNorm(16), ["fused_rms_norm_multiply"]),
        (Calls(lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)), ["rms_norm"]),
        (Calls(lambda x: torch.relu(x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6))), ["fused_rms_norm_relu"]),
        (nn.Sequential(nn.LayerNorm(16), nn.ReLU()), ["fused_layer_norm_relu"]),
        (nn.Sequential(nn.Unflatten(2, (2, 8)), nn.GroupNorm(5, 5), nn.ReLU()), ["fused_group_norm_relu"]),
        (Calls(lambda x: torch.softmax(x, -1) * 2), ["fused_softmax_multiply"]),
        (Calls(lambda x: torch.softmax(x.unflatten(2, (4, 4)), 1)), ["softmax"]),
        (Calls(lambda x: x.logsumexp(1, keepdim=True)), ["logsumexp"]),
        (Calls(lambda x: x.logsumexp((0, 2))), ["transpose", "logsumexp"]),
    ],
    ids=["rms", "written-rms", "quotient", "layer", "group", "softmax", "inner axes", "logsumexp", "two axes"],
)
def test_a_normalisation_is_one_function(model: nn.Module, names: list[str]) -> None:
    assert called(check(model, torch.randn(2, 5, 16))) == names


@pytest.mark.whole
def test_a_normalisation_of_an_image_s_patches_follows_their_reshape() -> None:
    model = Calls(
        lambda x, patches, norm, layer: layer(norm(patches(x).flatten(2).transpose(1, 2))),
        patches=nn.Conv2d(3, 8, 4, 4),
        norm=nn.LayerNorm(8),
        layer=nn.Linear(8, 4),
    )
    assert called(check(model, torch.randn(2, 3, 8, 8))) == ["fused_conv2d_add", "layer_norm", "fused_matmul_add"]


@pytest.mark.whole
def test_a_mean_square_of_another_tensor_is_no_normalisation() -> None:
    model = Calls(lambda x, y: x * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6))
    assert "rms_norm" not in called(check(model, torch.randn(3, 16), torch.randn(3, 16)))


def _residual(x: torch.Tensor, y: torch.Tensor, norm: nn.Module) -> torch.Tensor:
    total = x + y
    return total * norm(total)


@pytest.mark.parametrize(
    ("function", "norm", "names"),
    [
        (_residual, nn.LayerNorm(20), ["add_layer_norm", "fused_multiply"]),
        (_residual, nn.RMSNorm(20), ["add_rms_norm", "fused_multiply"]),
        (
            lambda x, y, norm: torch.relu(norm(x + y + 1.5 * x)),
            nn.LayerNorm(20),
            ["multiply", "fused_add_layer_norm_relu"],
        ),
    ],
    ids=["layer", "rms", "sum of three"],
)
def test_a_sum_and_its_norm_are_one_function(function: Any, norm: nn.Module, names: list[str]) -> None:
    model = Calls(function, norm=norm)
    assert sorted(called(check(model, torch.randn(2, 3, 20), torch.randn(2, 3, 20)))) == sorted(names)


def test_the_norm_of_a_part_is_a_function_of_its_own() -> None:
    model = Calls(lambda x, norm: norm(x.split(20, -1)[1]), norm=nn.LayerNorm(20))
    assert called(check(model, torch.randn(3, 40)))[-1] == "layer_norm"


def test_a_sum_that_ends_a_product_stays_with_it() -> None:
    model = Calls(lambda x, y, layer, norm: norm(layer(x) + y), layer=nn.Linear(12, 20), norm=nn.LayerNorm(20))
    assert called(check(model, torch.randn(3, 12), torch.randn(3, 20))) == ["fused_matmul_add_add", "layer_norm"]

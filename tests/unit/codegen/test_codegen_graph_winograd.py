"""Winograd's convolutions: what they compute, how far it is from exact, and which convolutions become one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import tvm
from torch import nn

from loopwright.codegen.graph.winograd import PASS, switched_off
from tests.support.models import called, lowered, run


def layers(inputs: int, outputs: int, **options: int) -> nn.Module:
    torch.manual_seed(inputs)
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, **options), nn.ReLU()).eval()


@pytest.mark.parametrize(
    ("shape", "outputs", "padding"),
    [
        ((2, 72, 19, 14), 65, 1),
        pytest.param((1, 64, 17, 17), 80, 0, marks=pytest.mark.whole),
        pytest.param((1, 128, 18, 22), 96, 2, marks=pytest.mark.whole),
    ],
)
def test_the_result_is_the_convolutions(shape: tuple[int, ...], outputs: int, padding: int) -> None:
    model, x = layers(shape[1], outputs, padding=padding), torch.randn(shape)
    mod = lowered(model, x)
    assert sum(name.startswith("winograd_image") for name in called(mod)) == 1
    with torch.no_grad():
        exact = model.double()(x.double()).numpy()
    assert np.abs(run(mod, x) - exact).max() < 3e-5 * exact.max()


def test_infinities_nan_and_outliers_stay_with_the_outputs_that_read_them() -> None:
    model, x = layers(64, 48, padding=1), torch.randn(1, 64, 22, 26) * 1e-3
    for y, value in ((5, math.inf), (11, -math.inf), (16, math.nan), (20, 1e37)):
        x[0, y, y, y % 7] = value
    x[0, :, 10, 22] = 1e6
    mod = lowered(model, x)
    assert "winograd_image" in called(mod)
    with torch.no_grad():
        expected = model(x).numpy()
    assert np.isnan(expected).any()
    assert np.isinf(expected).any()
    np.testing.assert_allclose(run(mod, x), expected, rtol=1e-3, atol=1e-5)


def test_a_kernel_with_an_infinity_stays() -> None:
    model = layers(64, 64, padding=1)
    model[0].weight.data[3, 5, 1, 1] = math.inf
    assert not any("winograd" in name for name in called(lowered(model, torch.zeros(1, 64, 20, 20))))


def test_what_follows_is_computed_with_the_result() -> None:
    mod = lowered(nn.Sequential(layers(64, 64, padding=1), layers(64, 64, padding=1)), torch.randn(1, 64, 20, 20))
    assert called(mod) == [
        "transpose",
        "winograd_image",
        "matmul",
        "fused_winograd_result_add_relu",
        "winograd_image",
        "matmul",
        "fused_winograd_result_add_relu_transpose",
    ]


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (layers(8, 8, padding=1), (1, 8, 32, 32)),
        (layers(512, 512, padding=1), (1, 512, 7, 7)),
        (layers(64, 64, padding=1, stride=2), (1, 64, 32, 32)),
        (layers(64, 64, padding=2, dilation=2), (1, 64, 32, 32)),
        (layers(128, 128, padding=1, groups=2), (1, 128, 32, 32)),
        (nn.Conv2d(64, 64, 5, padding=2).eval(), (1, 64, 32, 32)),
    ],
    ids=["few channels", "few tiles", "stride", "dilation", "groups", "5x5"],
)
def test_other_convolutions_stay(model: nn.Module, shape: tuple[int, ...]) -> None:
    assert not any("winograd" in name for name in called(lowered(model, torch.zeros(shape))))


@pytest.mark.parametrize(
    ("disabled", "options"), [([PASS], {}), ([], {"exact_math": True}), ([], {"math": "tf32"})], ids=str
)
def test_it_can_be_switched_off(disabled: list[str], options: dict[str, Any]) -> None:
    with tvm.transform.PassContext(disabled_pass=disabled):
        mod = lowered(layers(64, 64, padding=1), torch.zeros(1, 64, 20, 20), **options)
    assert not any("winograd" in name for name in called(mod))


def test_what_else_is_switched_off_stays_so() -> None:
    with tvm.transform.PassContext(opt_level=1, disabled_pass=["ChannelsLast"], config={"tirx.disable_assert": True}):
        with switched_off():
            inner = tvm.transform.PassContext.current()
            assert set(inner.disabled_pass) == {"ChannelsLast", PASS}
            assert (inner.opt_level, dict(inner.config)) == (1, {"tirx.disable_assert": True})
        assert PASS not in tvm.transform.PassContext.current().disabled_pass

"""Maxima, minima, limits and their places in PyTorch's tensors with NaN, infinities and ties, compared with PyTorch."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.support.cases import first
from tests.support.torch_models import assert_agree, compiled

LOW, NAN = float("-inf"), float("nan")
X = torch.randn(2, 4, 9, 9, generator=torch.Generator().manual_seed(0))
PARTLY = X.clone()
PARTLY[0, 0, 0, 0] = PARTLY[0, 1, 8, 8] = PARTLY[1, 2, 3, 4] = NAN
MASKED = torch.full_like(X, LOW)
INPUTS = {"numbers": X, "nan": PARTLY, "minus infinity": MASKED, "infinity": -MASKED, "ties": X.round()}


def test_limits_keep_nan() -> None:
    assert_agree(
        {
            "activations": lambda x: (functional.relu(x), functional.relu6(x), functional.hardtanh(x)),
            "hard": lambda x: (functional.hardswish(x), functional.hardsigmoid(x), functional.leaky_relu(x)),
            "clamp": lambda x: (
                x.clamp(-1, 1),
                x.clamp(min=0),
                x.clamp(max=0.5),
                x.clamp(1, -1),
                x.clamp(x / 2, x[:1]),
            ),
            "pairs": lambda x: (torch.maximum(x, x[:, :1]), torch.minimum(x[:, :1], x), torch.sign(x)),
        },
        *((x,) for x in INPUTS.values()),
    )


def test_extremes_of_rows_and_windows_keep_nan_and_infinities() -> None:
    pool = functional.max_pool2d
    assert_agree(
        {
            "all": lambda x: (x.max(), x.min(), x.amax(), x.argmax(), x.argmin()),
            "axis": lambda x: (x.amax(1), x.amin((0, 1)), x.max(2), x.min(1, keepdim=True), x.argmax(0, keepdim=True)),
            "running": lambda x: (x.cummax(1), x.cummin(2)),
            "exponentials": lambda x: (x.logsumexp(1), x.logsumexp(-1, True), x.logsumexp((0, 2))),
            "pool": lambda x: (pool(x, 2), pool(x, 3, 2, 1), pool(x, 3, 2, 1, ceil_mode=True), pool(x, 2, dilation=2)),
            "others": lambda x: (functional.max_pool1d(x[0], 3), functional.max_pool3d(x, 2), pool(x[0], 2)),
            "places": lambda x: pool(x, 3, 2, 1, return_indices=True),
            "adaptive": lambda x: functional.adaptive_max_pool2d(x, 3),
        },
        *((x,) for x in INPUTS.values()),
    )


@pytest.mark.parametrize("dtype", first(1, [torch.float16, torch.bfloat16]))
def test_halves_keep_nan_and_infinities(dtype: torch.dtype) -> None:
    assert_agree(
        {
            "limits": lambda x: (functional.relu(x), x.clamp(-1, 1), torch.maximum(x, x[:, :1])),
            "extremes": lambda x: (x.max(), x.argmax(1), functional.max_pool2d(x, 2), x.amin(1)),
        },
        *((x.to(dtype),) for x in INPUTS.values()),
    )


def test_extremes_of_integers_and_booleans_agree() -> None:
    least = torch.full((3, 4), -(2**31), dtype=torch.int32)
    assert_agree(
        {
            "limits": lambda i: (functional.relu(i), i.clamp(-1, 1), i.clamp(1, 2.5), torch.maximum(i, i[:1])),
            "extremes": lambda i: (i.max(), i.min(1), i.argmax(1), i.argmin(0), (i > 0).amax(1), (i > 0).max()),
            "promoted": lambda i: (i.clamp(1, torch.tensor(3)), torch.maximum(i, i.double() / 2)),
        },
        (torch.arange(-5, 7, dtype=torch.int32).reshape(3, 4),),
        (least,),
        (-1 - least,),
    )


def test_equal_elements_keep_their_order_in_a_stable_sort() -> None:
    assert_agree(
        {"all": lambda i: (i.sort(dim=1, stable=True), torch.sort(i.float(), stable=True, dim=0, descending=True))},
        (torch.tensor([[3, 1, 3, 1, 2], [1, 1, 2, 1, 3]]),),
    )


def test_a_convolution_network_with_another_layout_keeps_nan() -> None:
    layers = nn.Conv2d(4, 8, 3), nn.ReLU(), nn.MaxPool2d(2, padding=1), nn.Conv2d(8, 8, 3), nn.ReLU6()
    model = nn.Sequential(*layers).eval()
    run = compiled(model, (X,))
    for x in (X, PARTLY):
        with torch.no_grad():
            torch.testing.assert_close(run(x)[0], model(x), rtol=1e-4, atol=1e-5, equal_nan=True)

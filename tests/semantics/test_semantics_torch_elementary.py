"""Elementary functions, activations and normalisations of PyTorch, near 0 and far from it, compared with PyTorch."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.support.cases import first
from tests.support.torch_models import assert_agree

INF, NAN = float("inf"), float("nan")
USUAL = torch.randn(3, 11, generator=torch.Generator().manual_seed(0))
SMALL = torch.tensor([1e-4, 1e-6, 1e-8, 1e-12, -1e-6, -1e-9, 0.5, -0.5, 1e-40, 0.0, -0.0]).repeat(3, 1)
LARGE = torch.tensor([-20.0, -100, 20, 90, -INF, INF, NAN, 3e38, -15, 15, 88.5]).repeat(3, 1)
IMAGE = torch.randn(2, 4, 6, 6, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("dtype", first(1, [torch.float32, torch.float64]))
def test_functions_are_right_near_zero_and_far_from_it(dtype: torch.dtype) -> None:
    assert_agree(
        {
            "cancelling": lambda x: (torch.log1p(x), torch.expm1(x), torch.sinh(x), torch.cosh(x), torch.atanh(x)),
            "scaled": lambda x: (functional.selu(x), functional.celu(x, 2.0), functional.elu(x, 0.3)),
            "composed": lambda x: (functional.softplus(x), functional.logsigmoid(x), functional.softplus(x, 2, 5)),
            "shrunk": lambda x: (functional.softshrink(x, 0.1), functional.hardshrink(x)),
        },
        *((x.to(dtype),) for x in (USUAL, SMALL, LARGE)),
        rtol=1e-5 if dtype == torch.float32 else 1e-12,
        atol=1e-38,
    )


def test_functions_of_integers_have_results_of_floats() -> None:
    assert_agree(
        {
            "functions": lambda i, b: (i.sin(), i.exp(), i.sqrt(), i.sigmoid(), torch.log1p(i + 4), torch.expm1(i)),
            "whole": lambda i, b: (i.floor(), i.abs(), -i, i.square(), i.round(), torch.isnan(i)),
            "others": lambda i, b: (torch.atan2(i, i + 1), b.exp(), b.sqrt(), torch.exp2(i)),
        },
        (torch.arange(-3, 9).reshape(3, 4), torch.arange(12).reshape(3, 4) > 5),
    )


def norms(x: torch.Tensor) -> object:
    weight, bias = torch.arange(4, dtype=x.dtype), torch.ones(4, dtype=x.dtype)
    zeros, ones = torch.zeros(4, dtype=x.dtype), torch.ones(4, dtype=x.dtype)
    return (
        functional.group_norm(x, 2),
        functional.group_norm(x, 4, weight, bias),
        functional.instance_norm(x),
        functional.layer_norm(x, (6, 6)),
        functional.layer_norm(x, (6,), torch.arange(6, dtype=x.dtype), torch.ones(6, dtype=x.dtype)),
        functional.batch_norm(x, zeros, ones, weight, bias),
        functional.rms_norm(x, (6,)),
    )


def test_norms_of_data_with_a_large_mean_agree() -> None:
    assert_agree({"all": norms}, (IMAGE,), (IMAGE * 0.1 + 1000,), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(("dtype", "tolerance"), first(1, [(torch.float16, 2e-3), (torch.bfloat16, 2e-2)]))
def test_norms_of_halves_are_rounded_once(dtype: torch.dtype, tolerance: float) -> None:
    assert_agree({"all": norms}, (IMAGE.to(dtype),), rtol=tolerance, atol=tolerance)

"""Sums, means, products, norms and `any` of PyTorch's dtypes, compared with PyTorch."""

from __future__ import annotations

import torch

from tests.support.torch_models import assert_agree

LONG = torch.tensor([[1, -2, 0, 7], [-7, 5, 2, -1], [3, 4, -6, 9]])
FLOAT = torch.tensor([[3.0, -2.5, 0.0, 7.5], [-7.0, 1.0, 2.0, -0.5], [1e-3, 4, 9, 1.5]])
NAN = float("nan")


def test_integers_are_summed_in_the_dtype_of_pytorch() -> None:
    assert_agree(
        {
            "bytes": lambda u, b, i: (u.cumsum(0), u.cumsum(1, dtype=torch.int32), u.cumprod(1), u.sum(), u.any(1)),
            "booleans": lambda u, b, i: (b.cumsum(0), b.sum(), b.sum(1, keepdim=True), b.sum(dtype=torch.float32)),
            "products": lambda u, b, i: (i.prod(), i.prod(1), i.prod(-1, keepdim=True)),
            "any": lambda u, b, i: (i.any(), i.any(1), i.any(0, keepdim=True), i.any(dim=(0, 1)), i.all(), u.all(1)),
            "means": lambda u, b, i: (i.mean(dtype=torch.float32), i.mean(1, dtype=torch.float64)),
        },
        (LONG.to(torch.uint8) + 200, LONG > 0, LONG.to(torch.int32) * 1000),
    )


def test_nan_is_true_and_differs() -> None:
    assert_agree(
        {"all": lambda x: (x.any(), x.any(1), x.all(1), x != 0, x != x, x.bool(), torch.logical_not(x))},
        (torch.tensor([[NAN, 0.0], [0.0, -0.0]]),),
    )


def test_halves_are_summed_in_float32() -> None:
    def all_of(x: torch.Tensor) -> object:
        sums = x.sum(), x.mean(), x.cumsum(0)[-1], (x * 16).mean(0), x.norm()
        return *sums, x.softmax(0), x.log_softmax(0), x.std(), x.var()

    ones = torch.ones(4096)
    assert_agree({"all": lambda h, b: (all_of(h), all_of(b))}, (ones.half(), ones.bfloat16()))


def test_norms_and_variances_agree() -> None:
    def all_of(x: torch.Tensor) -> object:
        norms = [x.norm(order, 1) for order in (0, 1, 2, 3, float("inf"), float("-inf"))]
        deviations = x.std(), x.var(1), x.var(0, correction=0), torch.var(x, 1, correction=3), torch.std_mean(x, 1)
        return norms, deviations, torch.linalg.vector_norm(x, dtype=torch.float64)

    assert_agree({"all": all_of}, (FLOAT,), (FLOAT + 1000,), rtol=1e-4)

"""Dtypes that models have less often: bytes, doubles and bfloat16; and constants that are no finite numbers."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from tvm import relax

from loopwright import UnsupportedModel
from loopwright.applying.lookup import ASSUMED, lower
from loopwright.frontends.program import Program
from tests.support.torch_models import assert_agree


def test_bytes_wrap_around_and_have_no_sign() -> None:
    left, right = torch.tensor([250, 128, 7, 255, 1]).byte(), torch.tensor([3, 255, 250, 2, 9]).byte()
    assert_agree(
        {
            "negative": lambda x, y: -x,
            "sign": lambda x, y: (x.sign(), x.sgn()),
            "arithmetic": lambda x, y: (x + y, x - y, x * y, x // y, x % y, x / y, x**2, x - 5, x * -1),
            "bits": lambda x, y: (~x, x & y, x ^ y, x << 1, x >> 2),
            "order": lambda x, y: (x < y, torch.maximum(x, y), x.clamp(3, 250), x < -1, x > 300),
            "sums": lambda x, y: (x.sum(), x.prod(), x.cumsum(0), x.amax()),
        },
        (left, right),
        (right, left),
    )


def test_norms_of_doubles_are_computed_in_doubles() -> None:
    torch.manual_seed(0)
    layers = {
        "rows": nn.LayerNorm([4, 6]),
        "plain": nn.LayerNorm(6, elementwise_affine=False),
        "groups": nn.GroupNorm(2, 4),
        "batch": nn.BatchNorm1d(4),
    }
    for layer in layers.values():
        for parameter in layer.double().eval().requires_grad_(False).parameters():
            nn.init.normal_(parameter)
    assert_agree(dict(layers), (torch.randn(3, 4, 6).double() * 5 + 1e6,), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_tensors_may_be_full_of_what_is_no_number(dtype: torch.dtype) -> None:
    x = torch.linspace(-2, 2, 6).reshape(2, 3).to(dtype)
    assert_agree(
        {
            "like": lambda x: (torch.full_like(x, math.nan), torch.full_like(x, 2.5)),
            "masked": lambda x: torch.where(x > 0, x, torch.full_like(x, -math.inf)),
            "other shape": lambda x: (x.new_full((3, 1), math.inf), x.new_full((), -math.inf) * x),
            "softmax": lambda x: F.softmax(x.masked_fill(x < 0, -math.inf), -1),
        },
        (x,),
        rtol=1e-2,
    )


def test_bfloat16_is_tested_for_nan_and_infinities() -> None:
    x = torch.tensor([math.nan, 1.5, math.inf, -math.inf, -0.0, 3e38]).bfloat16()
    assert_agree(
        {
            "tests": lambda x, y: (x.isnan(), x.isinf(), x.isfinite(), torch.isclose(x, y, equal_nan=True)),
            "replaced": lambda x, y: (x.nan_to_num(), x.nan_to_num(1.0, 2.0, -3.0), torch.fmin(x, y), torch.fmax(x, y)),
            "sums": lambda x, y: (x.nansum(), torch.hypot(x, y)),
        },
        (x, x.flip(0)),
        rtol=1e-2,
    )


def test_what_tvm_cannot_lower_is_no_error_of_tvm() -> None:
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType((2, 4), "float64"))
    weight = relax.const([1.0] * 4, "float64")
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.layer_norm(x, weight, weight, [-1])))
    with pytest.raises(UnsupportedModel, match=r"TVM cannot lower.*layer_norm: only support float32"):
        lower(Program(builder.get()), ASSUMED)

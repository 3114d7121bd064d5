"""Quantised models of PyTorch: PT2E's operators, products of int8, and weights that are unpacked by shifts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # it registers the operators
from torch import nn

from loopwright import UnsupportedModel, frontends
from loopwright.codegen.functions import prim_funcs
from loopwright.model import Model
from tests.support.draws import torch_draws
from tests.support.models import Calls, called, lowered
from tests.support.torch_models import assert_agree, compiled

ops = torch.ops.quantized_decomposed
DRAWN = torch_draws()
ROWS = torch.randn(6, 96, generator=DRAWN) * 3
SPECIAL = torch.tensor([0.5, 1.5, 2.5, -0.5, 1e9, -1e9, 0.0, -0.0] * 12).repeat(6, 1)
TYPES = ((torch.int8, -128, 127), (torch.int8, -127, 127), (torch.uint8, 0, 255), (torch.uint8, 0, 127))


def whole(*shape: int, low: int = -128, high: int = 128) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=DRAWN)


def test_quantisation_of_pt2e_agrees() -> None:
    scales = torch.rand(96, generator=DRAWN) + 0.1

    def there_and_back(x: torch.Tensor, dtype: torch.dtype, low: int, high: int) -> object:
        zero = torch.full((96,), low + 9)
        one = ops.quantize_per_tensor(x, 0.5, low + 9, low, high, dtype)
        each = ops.quantize_per_channel(x, scales, zero, 1, low, high, dtype)
        return (
            one,
            ops.dequantize_per_tensor(one, 0.5, low + 9, low, high, dtype),
            each,
            ops.dequantize_per_channel(each, scales, zero, 1, low, high, dtype),
        )

    functions: dict[str, Callable[..., object]] = {
        f"{dtype} {low}": lambda x, d=dtype, a=low, b=high: there_and_back(x, d, a, b) for dtype, low, high in TYPES
    }
    assert_agree(functions, (ROWS,), (SPECIAL,))


def test_scales_that_follow_from_the_data_agree() -> None:
    def dynamic(x: torch.Tensor, choose: Callable[..., tuple[torch.Tensor, torch.Tensor]]) -> object:
        scale, zero = choose(x, -128, 127, 1e-5, torch.int8)
        rows = ops.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
        return scale, zero, rows, ops.dequantize_per_tensor.tensor(rows, scale, zero, -128, 127, torch.int8)

    assert_agree(
        {
            "affine": lambda x: dynamic(x, ops.choose_qparams.tensor),
            "symmetric": lambda x: dynamic(x, ops.choose_qparams_symmetric.tensor),
        },
        (ROWS,),
        (torch.zeros(6, 96),),
        (ROWS.abs() + 2,),
    )


class Linear(nn.Module):
    """A layer with int8 weights, as PT2E converts it."""

    def __init__(self, *, is_dynamic: bool, channels: bool = True) -> None:
        super().__init__()
        self.is_dynamic = is_dynamic
        self.register_buffer("weight", whole(48, 96).to(torch.int8))
        self.register_buffer("scale", torch.rand(48, generator=DRAWN) / 50)
        self.register_buffer("zero", torch.zeros(48, dtype=torch.int64))
        self.bias = nn.Parameter(torch.randn(48, generator=DRAWN))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.is_dynamic:
            scale, zero = ops.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)
            rows = ops.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
            rows = ops.dequantize_per_tensor.tensor(rows, scale, zero, -128, 127, torch.int8)
        else:
            rows = ops.dequantize_per_tensor(
                ops.quantize_per_tensor(x, 0.07, -3, -128, 127, torch.int8), 0.07, -3, -128, 127, torch.int8
            )
        weight = ops.dequantize_per_channel(self.weight, self.scale, self.zero, 0, -128, 127, torch.int8)
        return nn.functional.linear(rows, weight, self.bias).relu()


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_layers_of_pt2e_multiply_integers(is_dynamic: bool) -> None:
    model = Linear(is_dynamic=is_dynamic)
    program = frontends.to_program(Model(model, example_inputs=(ROWS,)))
    assert sorted(weight.dtype for weight in map(_array, program.weights.values()) if weight.size > 48) == ["int8"]
    (got,) = compiled(model, (ROWS,))(ROWS)
    np.testing.assert_allclose(got, model(ROWS).detach(), rtol=1e-4, atol=1e-4)


def test_convolutions_of_pt2e_multiply_integers() -> None:
    kernel, scale, zero = whole(4, 3, 3, 3).to(torch.int8), torch.rand(4, generator=DRAWN) / 50, torch.zeros(4).long()

    def convolved(x: torch.Tensor) -> torch.Tensor:
        rows = ops.quantize_per_tensor(x, 0.07, 20, 0, 255, torch.uint8)
        rows = ops.dequantize_per_tensor(rows, 0.07, 20, 0, 255, torch.uint8)
        weight = ops.dequantize_per_channel(kernel, scale, zero, 0, -128, 127, torch.int8)
        return nn.functional.conv2d(rows, weight, torch.ones(4), padding=1).relu()

    image = torch.randn(1, 3, 8, 8, generator=DRAWN)
    program = frontends.to_program(Model(Calls(convolved), example_inputs=(image,)))
    assert [weight.dtype for weight in map(_array, program.weights.values()) if weight.size > 4] == ["int8"]
    assert_agree({"conv": convolved}, (image,), rtol=1e-4, atol=1e-4)


def _array(weight: Any) -> np.ndarray[Any, Any]:
    return np.asarray(weight.numpy())


def test_products_of_int8_agree() -> None:
    weight = whole(96, 32).to(torch.int8)
    scale = torch.rand(32, generator=DRAWN)

    def product(x: torch.Tensor) -> object:
        step = x.abs().amax(1, keepdim=True) / 127
        rows = (x / step).round().clamp(-128, 127).to(torch.int8)
        return torch._int_mm(rows, weight).to(torch.float32) * step * scale, torch._int_mm(rows, weight)

    assert_agree({"dynamic": product}, (torch.randn(32, 96, generator=DRAWN),), rtol=1e-4, atol=1e-3)


def test_layers_with_a_scale_for_each_row_multiply_integers() -> None:
    """As torchao's Int8DynamicActivationInt8Weight, with the scale of each row rounded up from zero."""
    weight, scale = whole(40, 96).to(torch.int8), torch.rand(40, generator=DRAWN) / 90

    def layer(x: torch.Tensor) -> torch.Tensor:
        low, high = torch.amin(x, -1, keepdim=True), torch.amax(x, -1, keepdim=True)
        largest = torch.maximum(-torch.minimum(low, torch.zeros_like(low)), high.clamp(min=0))
        step = torch.clamp(largest / 127.5, min=1e-5)
        rows = torch.clamp(torch.round(x * (1 / step)), -128, 127).to(torch.int8)
        return torch._int_mm(rows, weight.t()).to(torch.float32) * step * scale

    rows = torch.cat([ROWS, torch.zeros(14, 96), 300 * torch.randn(9, 96, generator=DRAWN)])
    mod = lowered(Calls(layer), rows)
    [product] = [func for var, func in prim_funcs(mod) if "matmul" in str(var.name_hint)]
    assert [str(param.dtype) for param in product.params[:2]] == ["int8", "int8"]
    assert len(called(mod)) == 5
    assert_agree({"layer": layer}, (rows,), rtol=1e-5, atol=1e-5)


class Packed(nn.Module):
    """A layer whose weights of 4 bits are packed in words of int32 or in bytes, as GPTQ, AWQ and torchao do it."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        if form == "GPTQ":
            self.register_buffer("words", whole(96 // 8, 48, low=-(2**31), high=2**31).to(torch.int32))
            self.register_buffer("shifts", torch.arange(0, 32, 4, dtype=torch.int32).reshape(1, 8, 1))
            self.register_buffer("zeros", whole(3, 48 // 8, low=-(2**31), high=2**31).to(torch.int32))
        else:
            self.register_buffer("words", whole(48, 96 // 2, low=0, high=256).to(torch.uint8))
        self.register_buffer("scale", torch.rand(3, 48, generator=DRAWN) / 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.form == "GPTQ":
            weight = ((self.words.unsqueeze(1) >> self.shifts) & 15).reshape(96, 48)
            zeros = ((self.zeros.unsqueeze(2) >> self.shifts.reshape(1, 1, 8)) & 15).reshape(3, 1, 48)
            blocks = (weight.reshape(3, 32, 48) - zeros) * self.scale.unsqueeze(1)
            return x @ blocks.reshape(96, 48)
        low, high = self.words & 15, self.words >> 4
        weight = torch.stack([low, high], -1).reshape(48, 3, 32).to(torch.float32) - 8
        return nn.functional.linear(x, (weight * self.scale.t().unsqueeze(2)).reshape(48, 96))


@pytest.mark.parametrize("form", ["GPTQ", "bytes"])
def test_weights_that_are_unpacked_by_shifts_agree_and_stay_packed(form: str) -> None:
    model = Packed(form)
    program = frontends.to_program(Model(model, example_inputs=(ROWS,)))
    size = sum(_array(weight).nbytes for weight in program.weights.values())
    assert size <= 1.1 * sum(buffer.nbytes for buffer in model.buffers())
    mod = lowered(model, ROWS)
    assert called(mod) == ["matmul"]
    (got,) = compiled(model, (ROWS,))(ROWS)
    np.testing.assert_allclose(got, model(ROWS), rtol=1e-4, atol=1e-3)


def test_weights_that_pytorch_has_packed_are_refused_with_a_way_on() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is deprecated
        model = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(96, 4)).eval(), {nn.Linear})
        with pytest.raises(UnsupportedModel, match="convert_pt2e"):
            frontends.to_program(Model(model, example_inputs=(ROWS,)))

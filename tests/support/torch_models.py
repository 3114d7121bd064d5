"""PyTorch functions as models, compiled as the service lowers them, and compared with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import tvm
from torch import nn
from tvm import relax

from loopwright import frontends
from loopwright.codegen.program.lowering import lower
from loopwright.codegen.weights.parameters import attach
from loopwright.frontends.torch.values import tensors
from loopwright.model import Model
from tests.support.models import Calls


def compiled(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> Callable[..., list[torch.Tensor]]:
    """Return the program that is compiled of a model without tuning, called with tensors."""
    program = frontends.to_program(Model(model.eval(), example_inputs=inputs))
    target = tvm.target.Target("llvm")
    executable = tvm.compile(lower(attach(program.module, program.weights), target), target)
    main = relax.VirtualMachine(executable, tvm.cpu())["main"]

    def call(*given: torch.Tensor) -> list[torch.Tensor]:
        returned = main(*(tvm.runtime.from_dlpack(tensor.clone().contiguous()) for tensor in given))
        return [torch.from_dlpack(part) for part in (returned if isinstance(returned, tvm.ir.Array) else [returned])]

    return call


def assert_same(got: torch.Tensor, expected: torch.Tensor, *, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Compare dtype, shape, NaN, infinities and values; integers and booleans exactly."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    if not expected.dtype.is_floating_point:
        rtol = atol = 0.0
    np.testing.assert_allclose(got.double(), expected.double(), rtol=rtol, atol=atol)


def assert_agree(
    functions: dict[str, Callable[..., Any]], *inputs: tuple[torch.Tensor, ...], rtol: float = 1e-5, atol: float = 1e-6
) -> None:
    """Compile functions of the same inputs as one model, and compare each with PyTorch on all inputs.

    The first inputs are the example inputs.
    """
    model = Calls(lambda *given: {name: function(*given) for name, function in functions.items()})
    program = compiled(model, inputs[0])
    for given in inputs:
        expected = tensors(model(*(each.clone() for each in given)))
        got = program(*given)
        assert len(got) == len(expected)
        for (name, right), value in zip(expected.items(), got, strict=True):
            try:
                assert_same(value, right, rtol=rtol, atol=atol)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from error

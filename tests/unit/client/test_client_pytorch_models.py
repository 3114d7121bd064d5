"""Whole PyTorch models, as the classes of `transformers` give them, and the operators that they brought along."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from tvm import relax

from benchmarks.models.architectures import ARCHITECTURES, Architecture
from loopwright import frontends
from loopwright.codegen.program.lowering import lower
from loopwright.codegen.weights.parameters import attach
from loopwright.errors import UnsupportedModel
from loopwright.frontends.torch.values import replaced, tensors
from loopwright.model import Model
from tests.support.models import Calls


def results(model: nn.Module, inputs: Any) -> list[torch.Tensor]:
    """What the model returns when it is lowered as the service lowers it."""
    program = frontends.to_program(Model(model, example_inputs=inputs))
    target = tvm.target.Target("llvm")
    module = lower(attach(program.module, program.weights), target)
    machine = relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())
    given = [tvm.runtime.from_dlpack(tensor.clone()) for tensor in tensors(inputs).values()]
    returned = machine["main"](*given)
    parts = returned if isinstance(returned, tvm.ir.Array) else [returned]
    return [torch.from_dlpack(part) for part in parts]


def assert_agrees(model: nn.Module, inputs: Any) -> list[torch.Tensor]:
    """Compare what a model returns with PyTorch, and return it."""
    args, kwargs = replaced(((), inputs) if isinstance(inputs, dict) else (inputs, {}), {})
    with torch.no_grad():
        expected = tensors(model(*args, **kwargs))
    got = results(model, inputs)
    assert len(got) == len(expected) > 0
    for (name, right), value in zip(expected.items(), got, strict=True):
        assert (value.shape, value.dtype) == (right.shape, right.dtype), name
        scale = max(float(right.double().abs().max()), 1e-30)
        np.testing.assert_allclose(value.double(), right.double(), rtol=0, atol=1e-5 * scale, err_msg=name)
    return got


IN_THE_ROUND = ("DistilBERT",)


@pytest.mark.parametrize(
    "architecture",
    [
        pytest.param(each, marks=() if each.name in IN_THE_ROUND else pytest.mark.whole, id=each.name)
        for each in ARCHITECTURES
    ],
)
def test_architectures_agree_with_pytorch(architecture: Architecture) -> None:
    assert_agrees(architecture.model(), architecture.inputs())


@pytest.mark.whole
def test_a_decoder_goes_on_from_its_cache() -> None:
    made = next(one for one in ARCHITECTURES if one.name == "Llama")
    model, words = made.model(), made.inputs()["input_ids"]
    with torch.no_grad():
        cache = model(words[:, :5]).past_key_values
    step = {"input_ids": words[:, 5:6], "past_key_values": cache}
    logits, *_ = assert_agrees(model, step)
    assert cache.get_seq_length() == 5, "the cache of the caller grew"
    with torch.no_grad():
        whole = model(words[:, :6]).logits[:, -1:]
    np.testing.assert_allclose(logits, whole, rtol=0, atol=1e-5)


FLOATS = torch.tensor([[3.0, -2.5, 0.0, 7.5], [-7.0, 1.0, 2.0, -0.5]])
INTEGERS = torch.tensor([[3, -2, 0, 7], [-7, 1, 2, -1]])


OPERATORS: list[tuple[Callable[..., Any], torch.Tensor]] = [
    (lambda x: torch.cat([torch.tensor([]), x, x], -1), FLOATS),
    (lambda x: torch.cat([x, x[:, :0]], 1), FLOATS),
    (lambda x: torch.histc(x, bins=4, min=-7, max=7), FLOATS),
    (lambda x: torch.histc(x, bins=3, min=0, max=2), FLOATS),
    (lambda x: x / 2, INTEGERS),
    (lambda x: x // 2, INTEGERS),
    (lambda x: torch.div(x, 2, rounding_mode="trunc"), INTEGERS),
    (lambda x: torch.div(x, 2.0, rounding_mode="trunc"), FLOATS),
    (lambda x: torch.div(x, 2.0, rounding_mode="floor"), FLOATS),
    (lambda x: x / 3, FLOATS.half()),
    (lambda x: x / (x.double() + 0.25), FLOATS),
    (lambda x: 1 / (x + 0.25), FLOATS),
    (lambda x: x[:, -1] + x[:, 0], FLOATS),
    (lambda x: x[-2, 1:-1], FLOATS),
    (lambda x: x[torch.tensor([-1, 0])], FLOATS),
    (lambda x: x[torch.arange(2) - 1, torch.tensor([-4, 3])], FLOATS),
    (lambda x: torch.eye(8)[x, -x.abs()], INTEGERS),
    (lambda x: torch.eye(8)[:, x], INTEGERS),
    (lambda x: x.cumsum(1), FLOATS),
    (lambda x: x.cumsum(0), INTEGERS),
    (lambda x: x.sort(1, descending=True), FLOATS),
    (lambda x: x.topk(2, 1), FLOATS),
    (lambda x: {"sum": x.sum(), "list": [x + 1, None, (x * 2,)]}, FLOATS),
]


def test_operators_agree_with_pytorch() -> None:
    """All in one model, whose inputs are those of the operators."""
    computes, inputs = zip(*OPERATORS, strict=True)
    model = Calls(lambda *given: [compute(x) for compute, x in zip(computes, given, strict=True)])
    assert_agrees(model.eval(), inputs)


@pytest.mark.whole
def test_groups_of_rows_have_a_matrix_each() -> None:
    import transformers.integrations.moe  # noqa: F401 - registers the operator

    product = torch.ops.transformers.grouped_mm_fallback
    rows, matrices = torch.randn(6, 3), torch.randn(4, 3, 5)
    for ends in ([0, 2, 2, 6], [1, 3, 4, 5], [0, 0, 0, 0]):
        assert_agrees(Calls(product).eval(), (rows, matrices, torch.tensor(ends, dtype=torch.int32)))


def test_an_open_interval_of_a_histogram_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match="histc"):
        frontends.to_program(Model(Calls(lambda x: torch.histc(x, bins=4)).eval(), example_inputs=(FLOATS,)))


def test_threads_translate_models_at_once() -> None:
    """PyTorch itself fails in most of them: its tables change while it exports."""

    def translated(rows: int) -> int:
        model = nn.Sequential(nn.Linear(rows, 5), nn.GELU(), nn.LayerNorm(5)).eval()
        return len(frontends.to_program(Model(model, example_inputs=(torch.randn(2, rows),))).weights)

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(translated, range(3, 9))) == [4] * 6

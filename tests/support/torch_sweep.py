"""Every operator among PyTorch's own samples (OpInfo), compiled and compared with PyTorch.

Run as a program with names of operators, it prints the outcome of each cell as a line of JSON.
"""

from __future__ import annotations

import itertools
import json
import sys
import types
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from loopwright.errors import UnsupportedModel
from tests.support.torch_models import compiled

# PyTorch's samples import a library for its own test cases, which is not installed here.
sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=object))  # type: ignore[arg-type]

# They also forbid the process to set flags of backends, which other tests of the same process do.
with mock.patch("torch.backends.disable_global_flags"):
    from torch.testing._internal.common_methods_invocations import op_db

DTYPES = (torch.float32, torch.int64, torch.bool, torch.float16)
OPERATORS = {" ".join(filter(None, (each.name, each.variant_test_name))): each for each in op_db}
UNORDERED = ("topk", "kthvalue", "mode")
"""Operators whose second results are places of equal elements, which PyTorch leaves open."""
_MOST_ELEMENTS = 5000
_TOLERANCE = {torch.float16: 1e-2, torch.float32: 2e-5, torch.float64: 1e-10}
_SPECIAL = ((float("nan"), 1.5, -2.0, 0.0), (float("inf"), 1.0, float("-inf"), -0.0, 2.5), (0.5, -0.5, 2.5, 2.5, -7.0))


@dataclass(frozen=True, slots=True)
class Outcome:
    """``kind`` is pass, refused, different or raised; ``detail`` is the message of the last three."""

    operator: str
    dtype: str
    kind: str
    detail: str = ""


class _Cell(nn.Module):
    """An operator as a function of the tensors among its arguments."""

    def __init__(self, operator: Any, sample: Any) -> None:
        super().__init__()
        self.operator = operator
        leaves, self.spec = tree_flatten(((sample.input, *sample.args), dict(sample.kwargs)))
        self.places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.inputs = tuple(leaves[place].contiguous() for place in self.places)
        self.leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]

    def forward(self, *given: torch.Tensor) -> Any:
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, given, strict=True):
            leaves[place] = tensor
        args, kwargs = tree_unflatten(leaves, self.spec)
        return self.operator(*args, **kwargs)

    def expected(self, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        returned = tree_leaves(self(*(tensor.clone() for tensor in given)))
        return [leaf.clone() for leaf in returned if isinstance(leaf, torch.Tensor)]


def outcomes(name: str, dtype: torch.dtype, *, most: int) -> Iterator[Outcome]:
    """Compare at most so many samples of an operator, each also with special numbers in the place of its own."""
    operator, written = OPERATORS[name], str(dtype).removeprefix("torch.")
    if dtype not in operator.supported_dtypes("cpu"):
        return
    torch.manual_seed(0)
    samples = [sample for sample in itertools.islice(operator.sample_inputs("cpu", dtype), 200) if _is_small(sample)]
    for sample in samples[:: max(1, -(-len(samples) // most))]:
        kind, detail = _outcome(name, _Cell(operator.op, sample))
        if kind:
            yield Outcome(name, written, kind, detail)


def _is_small(sample: Any) -> bool:
    tensors = [
        leaf for leaf in tree_leaves((sample.input, sample.args, sample.kwargs)) if isinstance(leaf, torch.Tensor)
    ]
    return bool(tensors) and all(
        tensor.layout is torch.strided and not tensor.is_complex() and tensor.numel() <= _MOST_ELEMENTS
        for tensor in tensors
    )


def _outcome(name: str, cell: _Cell) -> tuple[str, str]:
    """Return the outcome and its detail; nothing for what PyTorch itself refuses, or has no dense results for."""
    try:
        expected = cell.expected(cell.inputs)
    except Exception:
        return "", ""
    if not expected or any(each.is_complex() for each in expected):
        return "", ""
    try:
        program = compiled(cell, cell.inputs)
    except UnsupportedModel as error:
        return "refused", str(error)
    except Exception as error:
        return "raised", f"{type(error).__name__}: {error}"
    for given in (cell.inputs, *(tuple(_special(each, numbers) for each in cell.inputs) for numbers in _SPECIAL)):
        try:
            expected = cell.expected(given)
        except Exception:  # PyTorch refuses these numbers
            continue
        got = program(*given)
        ordered = 1 if name in UNORDERED else len(expected)
        if difference := _difference(got[:ordered], expected[:ordered]):
            return "different", difference
    return "pass", ""


def _special(tensor: torch.Tensor, numbers: Sequence[float]) -> torch.Tensor:
    """Return a tensor of special numbers; other dtypes than floating-point ones stay, as they may be places."""
    if not tensor.is_floating_point():
        return tensor
    repeated = torch.tensor(numbers).repeat(tensor.numel() // len(numbers) + 1)[: tensor.numel()]
    return repeated.to(tensor.dtype).reshape(tensor.shape)


def _difference(got: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> str:
    if [(each.dtype, each.shape) for each in got] != [(each.dtype, each.shape) for each in expected]:
        return f"dtypes and shapes {[(each.dtype, each.shape) for each in got]}"
    for own, right in zip(got, expected, strict=True):
        tolerance = _TOLERANCE.get(right.dtype, 0.0)
        try:
            np.testing.assert_allclose(own.double(), right.double(), rtol=tolerance, atol=tolerance / 10)
        except AssertionError as error:
            return " ".join(str(error).split())[:300]
    return ""


if __name__ == "__main__":
    for each in sys.argv[2:]:
        for dtype in DTYPES:
            for outcome in outcomes(each, dtype, most=int(sys.argv[1])):
                print(json.dumps(asdict(outcome)), flush=True)

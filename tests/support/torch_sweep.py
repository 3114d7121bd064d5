"""Every operator among PyTorch's own samples (OpInfo), compiled and compared with PyTorch.

    .venv/bin/python -m tests.support.torch_sweep NAME ...         prints the outcome of each cell as a line of JSON
    .venv/bin/python -m tests.support.torch_sweep --renew NAME ... counts them in the table of the documentation

Without names, the table of all operators is renewed, which takes hours.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
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

DTYPES = (
    torch.float32, torch.int64, torch.bool, torch.float16, torch.bfloat16, torch.float64, torch.uint8,
)  # fmt: skip
OPERATORS = {" ".join(filter(None, (each.name, each.variant_test_name))): each for each in op_db}
UNORDERED = ("topk", "kthvalue", "mode")
"""Operators whose second results are places of equal elements, which PyTorch leaves open."""
ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs/hooks/operators/torch.json"
TOGETHER = 10
"""Operators that run in one process, which may die."""
_MOST_SAMPLES = 2
"""Of an operator, in each dtype."""
_SECONDS = 3600
"""Of such a process."""
_MOST_ELEMENTS = 5000
_TOLERANCE = {torch.bfloat16: 4e-2, torch.float16: 1e-2, torch.float32: 2e-5, torch.float64: 1e-10}
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


def swept(names: Sequence[str]) -> list[Outcome]:
    """Return the outcomes of operators in all dtypes, which another process finds.

    Raises:
        RuntimeError: the process ended with another status than 0.
    """
    command = [sys.executable, "-m", "tests.support.torch_sweep", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_SECONDS)
    if done.returncode:
        raise RuntimeError(f"{', '.join(names)}: {done.stderr[-2000:]}")
    return [Outcome(**json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]


def renew(names: Sequence[str]) -> None:
    """Count the outcomes of operators in the table of the documentation; what raises an error counts as different."""
    for first in range(0, len(names), TOGETHER):
        batch = names[first : first + TOGETHER]
        found = swept(batch)
        table = json.loads(TABLE.read_text())
        for name in batch:
            kinds = Counter(each.kind for each in found if each.operator == name)
            kinds["different"] += kinds.pop("raised", 0)
            if kinds.total():
                table[name] = {kind: kinds[kind] for kind in ("pass", "refused", "different")}
        rows = (f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in table.items())
        TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    if sys.argv[1:2] in ([], ["--renew"]):
        renew(sys.argv[2:] or list(OPERATORS))
        sys.exit()
    for each, dtype in itertools.product(sys.argv[1:], DTYPES):
        for outcome in outcomes(each, dtype, most=_MOST_SAMPLES):
            print(json.dumps(asdict(outcome)), flush=True)

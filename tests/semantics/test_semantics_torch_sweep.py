"""PyTorch's own samples of its operators: what Loopwright takes, it computes as PyTorch does."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
import torch

RESULTS = json.loads((Path(__file__).parents[2] / "docs/hooks/operators/torch.json").read_text())
DRAWN = {torch.float32: 6, torch.bfloat16: 2, torch.float64: 2, torch.uint8: 2}
"""Operators of which one sample runs in each round. They are drawn once: the seed is fixed."""
TOGETHER = 10
"""Operators that run in one process of the whole sweep."""


@pytest.mark.parametrize("dtype", DRAWN, ids=str)
def test_operators_drawn_by_a_fixed_seed_compute_what_pytorch_does(dtype: torch.dtype) -> None:
    from tests.support import torch_sweep  # which takes seconds to import PyTorch's samples

    right = [
        name
        for name, row in RESULTS.items()
        if row["pass"] and not row["refused"] and not row["different"]
        if dtype in torch_sweep.OPERATORS[name].supported_dtypes("cpu")
    ]
    drawn = [
        outcome
        for name in random.Random(0).sample(right, DRAWN[dtype])
        for outcome in torch_sweep.outcomes(name, dtype, most=1)
    ]
    assert len(drawn) >= DRAWN[dtype] / 2
    assert [outcome for outcome in drawn if outcome.kind != "pass"] == []


@pytest.mark.whole
@pytest.mark.parametrize("first", range(0, len(RESULTS), TOGETHER))
def test_operators_differ_only_where_the_documentation_says_so(first: int) -> None:
    from tests.support.torch_sweep import swept

    wrong = [each for each in swept(list(RESULTS)[first : first + TOGETHER]) if each.kind in ("different", "raised")]
    unexpected = Counter(each.operator for each in wrong) - Counter(
        {name: row["different"] for name, row in RESULTS.items()}
    )
    assert not unexpected, [each for each in wrong if each.operator in unexpected]

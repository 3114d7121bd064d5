"""PyTorch's own samples of its operators: what Loopwright takes, it computes as PyTorch does."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
RESULTS = json.loads((ROOT / "docs/hooks/operators/torch.json").read_text())
SAMPLE = 6
"""Operators of which one sample runs in each round. They are drawn once: the seed is fixed."""
TOGETHER = 10
"""Operators that run in one process in the whole sweep, which may die."""


def test_operators_drawn_by_a_fixed_seed_compute_what_pytorch_does() -> None:
    from tests.support import torch_sweep  # which takes seconds to import PyTorch's samples

    right = [name for name, row in RESULTS.items() if row["pass"] and not row["refused"] and not row["different"]]
    drawn = [
        outcome
        for name in random.Random(0).sample(right, SAMPLE)
        for outcome in torch_sweep.outcomes(name, torch.float32, most=1)
    ]
    assert len(drawn) > SAMPLE / 2
    assert [outcome for outcome in drawn if outcome.kind != "pass"] == []


@pytest.mark.whole
@pytest.mark.parametrize("first", range(0, len(RESULTS), TOGETHER))
def test_operators_differ_only_where_the_documentation_says_so(first: int) -> None:
    names = list(RESULTS)[first : first + TOGETHER]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.torch_sweep", "2", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    wrong = [each for each in outcomes if each["kind"] in ("different", "raised")]
    unexpected = Counter(each["operator"] for each in wrong) - Counter(
        {name: row["different"] for name, row in RESULTS.items()}
    )
    assert not unexpected, [each for each in wrong if each["operator"] in unexpected]

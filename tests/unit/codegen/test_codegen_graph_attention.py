"""Attention, however it is written, is one function that reads heads where they lie."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.nn import functional

from loopwright.codegen.functions import prim_funcs
from tests.support.models import Calls, called, check

attend = functional.scaled_dot_product_attention


def heads(rows: int = 6, depth: int = 4) -> torch.Tensor:
    return torch.randn(2, 3, rows, depth, generator=torch.Generator().manual_seed(rows))


HIDING = torch.tensor([[True, True, False, False, True, False, True], *[[False] * 7] * 5])
"""A mask of 6 rows and 7 columns; all rows but the first are masked entirely."""


@pytest.mark.parametrize(
    ("model", "mask"),
    [
        (lambda q, k, v: attend(q, k, v), None),
        (lambda q, k, v: attend(q, k, v, is_causal=True), None),
        (lambda q, k, v: attend(q, k, v, scale=0.25), None),
        (lambda q, k, v, m: attend(q, k, v, attn_mask=m), torch.randn(2, 1, 6, 7)),
        (lambda q, k, v, m: attend(q, k, v, attn_mask=m), HIDING),
        (lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2) / 2, -1) @ v, None),
        (lambda q, k, v, m: torch.softmax(q @ k.mT * 0.5 + m, -1) @ v, torch.randn(2, 1, 1, 7)),
        (lambda q, k, v, m: torch.softmax((q @ k.mT).masked_fill(~m, -1e4), -1) @ v, HIDING),
    ],
    ids=["plain", "causal", "scale", "additive", "boolean", "written", "written-additive", "written-where"],
)
def test_attention_is_one_function(model: Any, mask: torch.Tensor | None) -> None:
    inputs = [heads(), heads(7), heads(7)] + ([] if mask is None else [mask])
    mod = check(Calls(model), *inputs)
    assert called(mod) == ["attention"]
    [(_, func)] = prim_funcs(mod)
    assert "//" not in str(func.body)


def test_written_out_softmax_of_a_row_that_is_masked_entirely_is_not_a_number() -> None:
    mask = torch.zeros(6, 7).masked_fill(~HIDING, -math.inf)
    assert called(
        check(Calls(lambda q, k, v, m: torch.softmax(q @ k.mT + m, -1) @ v), heads(), heads(7), heads(7), mask)
    )


def test_probabilities_that_are_used_again_are_computed() -> None:
    def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(q @ k.mT, -1)
        return weights @ v + weights.sum(-1, keepdim=True)

    assert "attention" not in called(check(Calls(forward), heads(), heads(7), heads(7)))

"""Attention, however it is written, is one function that reads heads where they lie."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from torch.nn import functional
from tvm.s_tir import Schedule

from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.build import compile_module
from tests.support.models import Calls, called, check, lowered, run
from tests.support.rule_programs import TARGET

attend = functional.scaled_dot_product_attention


def heads(rows: int = 6, depth: int = 4) -> torch.Tensor:
    return torch.randn(2, 3, rows, depth, generator=torch.Generator().manual_seed(rows))


HIDING = torch.tensor([[True, True, False, False, True, False, True], *[[False] * 7] * 5])
"""A mask of 6 rows and 7 columns; all rows but the first are masked entirely."""
WHOLE = pytest.mark.whole


@pytest.mark.parametrize(
    ("model", "mask"),
    [
        pytest.param(lambda q, k, v: attend(q, k, v), None, marks=WHOLE),
        pytest.param(lambda q, k, v: attend(q, k, v, is_causal=True), None, marks=WHOLE),
        pytest.param(lambda q, k, v: attend(q, k, v, scale=0.25), None, marks=WHOLE),
        pytest.param(lambda q, k, v, m: attend(q, k, v, attn_mask=m), torch.randn(2, 1, 6, 7), marks=WHOLE),
        (lambda q, k, v, m: attend(q, k, v, attn_mask=m), HIDING),
        pytest.param(lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2) / 2, -1) @ v, None, marks=WHOLE),
        (lambda q, k, v, m: torch.softmax(q @ k.mT * 0.5 + m, -1) @ v, torch.randn(2, 1, 1, 7)),
        pytest.param(lambda q, k, v, m: torch.softmax((q @ k.mT).masked_fill(~m, -1e4), -1) @ v, HIDING, marks=WHOLE),
        (lambda q, k, v, m: torch.softmax(q @ k.mT + m, -1) @ v, torch.tensor(0.5)),
    ],
    ids=["plain", "causal", "scale", "additive", "boolean", "written", "written-additive", "written-where", "number"],
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


def test_a_mask_that_is_repeated_for_all_heads_is_read_where_it_lies() -> None:
    def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        mask = torch.zeros(2, 1, 1, 7).masked_fill(hidden.view(2, 1, 1, 7), -math.inf)
        return attend(q, k, v, attn_mask=mask.expand(2, 3, 6, 7))

    hidden = torch.tensor([[False] * 7, [True, *[False] * 6]])
    assert called(check(Calls(forward), heads(), heads(7), heads(7), hidden)) == ["attention"]


@pytest.mark.parametrize("start", [0, 15, 16, 40, 63])
def test_blocks_of_keys_that_a_mask_hides_from_all_queries_have_no_part_in_it(start: int) -> None:
    """A window of 20 keys for each of two queries, in a cache of 64."""

    def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        place = position + torch.arange(2)[:, None] - torch.arange(64)
        return attend(q, k, v, attn_mask=(place >= 0) & (place < 20))

    keys, values = heads(64), heads(64)
    mod = lowered(Calls(forward), heads(2), keys, values, torch.tensor(0))
    assert called(mod)[-2:] == ["seen_keys", "attention"]
    expected = forward(heads(2), keys, values, torch.tensor(start))
    for tensor in (keys, values):  # behind the last query, and before its window
        tensor[:, :, (start + 33) // 32 * 32 :] = torch.nan
        tensor[:, :, : max(0, start - 19) // 32 * 32] = torch.nan
    found = run(mod, heads(2), keys, values, torch.tensor(start))
    torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-4, atol=1e-5)


def test_scores_far_apart_choose_one_value_however_stages_are_inlined() -> None:
    """A score times the scale less the largest one is not 0 if the processor rounds the product in one place only."""
    drawn = np.random.default_rng(3)
    q, k, v = (drawn.standard_normal((3, 32, 16), dtype="float32") for _ in range(3))
    k[:, 5, 0] = 6.589e17
    [(_, func)] = prim_funcs(
        lowered(Calls(lambda q, k, v: attend(q, k, v, scale=0.3)), *map(torch.from_numpy, (q, k, v)))
    )
    schedule = Schedule(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}))
    for block in ("attention_keys", "attention_weights", "attention_exp"):
        if f'T.sblock("{block}")' in schedule.mod.script():
            schedule.compute_inline(schedule.get_sblock(block))
    result = tvm.runtime.tensor(np.full_like(q, np.nan))
    compile_module(schedule.mod, TARGET)["main"](*map(tvm.runtime.tensor, (q, k, v)), result)
    scores = 0.3 * q.astype("float64") @ k.transpose(0, 2, 1)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    expected = powers @ v / powers.sum(-1, keepdims=True)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.whole
def test_parts_of_one_tensor_are_read_where_they_lie() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        q, k, v = x.view(2, 5, 3, 3, 4).permute(2, 0, 3, 1, 4).unbind(0)
        first, second, third = x.view(2, 5, 3, 12).unbind(2)
        joined = attend(first, second, third)
        return attend(q, k, v).transpose(1, 2).reshape(2, 5, 12) + joined

    assert called(check(Calls(forward), torch.randn(2, 5, 36))) == ["attention", "fused_attention_add"]


@pytest.mark.whole
def test_keys_and_values_are_not_repeated_for_the_heads_that_share_them() -> None:
    batch = 2

    def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        return attend(q, k, v, attn_mask=mask, enable_gqa=True).transpose(1, 2).reshape(batch, 6, 16)

    inputs = torch.randn(batch, 6, 4, 4), torch.randn(batch, 7, 2, 4), torch.randn(batch, 7, 2, 4)
    for mask in (torch.randn(1, 1, 6, 7), torch.randn(batch, 4, 6, 7)):
        assert called(check(Calls(forward), *inputs, mask)) == ["attention"]


@pytest.mark.whole
def test_probabilities_that_are_used_again_are_computed() -> None:
    def forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(q @ k.mT, -1)
        return weights @ v + weights.sum(-1, keepdim=True)

    assert "attention" not in called(check(Calls(forward), heads(), heads(7), heads(7)))


class Layer(nn.Module):
    """A layer of an encoder as people write it."""

    def __init__(self, width: int = 12, count: int = 3) -> None:
        super().__init__()
        self.count = count
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm0, self.norm1 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            layer(x).view(*x.shape[:2], self.count, -1).permute(0, 2, 1, 3) for layer in (self.q, self.k, self.v)
        )
        weights = torch.softmax(torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1]), -1)
        merged = torch.matmul(weights, v).permute(0, 2, 1, 3).reshape(x.shape)
        x = self.norm0(self.out(merged) + x)
        return self.norm1(self.down(functional.gelu(self.up(x))) + x)


@pytest.mark.parametrize(
    ("layer", "batch"),
    [
        pytest.param(Layer(), 1, marks=WHOLE),
        (nn.TransformerEncoderLayer(12, 3, 24, batch_first=True, activation="gelu"), 2),
        pytest.param(nn.TransformerEncoderLayer(12, 3, 24, batch_first=False, activation="gelu"), 2, marks=WHOLE),
    ],
    ids=["written", "batch-first", "sequence-first"],
)
def test_an_encoder_layer_is_seven_functions(layer: nn.Module, batch: int) -> None:
    mod = check(layer, torch.randn(batch, 5, 12))
    assert called(mod) == [
        "fused_matmul_add",  # queries, keys and values
        "attention",
        "fused_matmul_add_add",
        "layer_norm",
        "fused_matmul_add_gelu",
        "fused_matmul_add_add",
        "layer_norm",
    ]
    assert "split" not in mod["main"].script()


def test_a_constant_mask_that_hides_nothing_is_left_out_and_others_are_not() -> None:
    seen = torch.ones(1, 1, 6, 7, dtype=torch.bool)
    for mask, count in ((seen, 3), (torch.zeros(6, 7), 3), (HIDING, 4), (torch.full((6, 7), 1e-3), 4)):
        mod = check(Calls(lambda q, k, v, m=mask: attend(q, k, v, attn_mask=m)), heads(), heads(7), heads(7))
        [(_, func)] = prim_funcs(mod)
        assert len(func.params) == count + 1

"""Pools that round their extents up fill no tensor larger than their own with padding."""

from __future__ import annotations

import math

import pytest
import torch
import tvm
import tvm_ffi
from torch import nn
from torch.nn import functional
from tvm.s_tir import SBlock

from loopwright.codegen.functions import prim_funcs
from tests.support.models import Calls, check

X = torch.randn(2, 3, 7, 6, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize(
    ("pool", "most"),
    [
        (nn.AvgPool2d(1280, ceil_mode=True), 42),
        (nn.AvgPool2d((1280, 2), (1280, 2), (2, 1), ceil_mode=True, count_include_pad=False), 11 * 8),
        (nn.MaxPool2d((50, 3), (50, 3), (1, 0), ceil_mode=True), 9 * 6),
        (nn.AvgPool2d((3, 4), 2, ceil_mode=True), 42),
        (Calls(lambda x: functional.avg_pool1d(x[0], 400, 400, ceil_mode=True)[None]), 42),
    ],
)
def test_windows_are_cut_to_what_they_pool(pool: nn.Module, most: int) -> None:
    mod = check(pool, X)
    filled = [
        math.prod(int(extent) for extent in buffer.shape)
        for _, func in prim_funcs(mod)
        for block in _blocks(func)
        for buffer in block.alloc_buffers
    ]
    assert max(filled, default=0) <= 6 * most


def _blocks(func: tvm.tirx.PrimFunc) -> list[SBlock]:
    found: list[SBlock] = []
    tvm_ffi.structural_walk(func.body, (SBlock, found.append), order="post")
    return found


def test_a_last_window_that_ends_outside_keeps_its_padding() -> None:
    check(nn.AvgPool2d(3, 2, 1, ceil_mode=True), X)
    check(nn.MaxPool2d(2, 5, ceil_mode=True), X)

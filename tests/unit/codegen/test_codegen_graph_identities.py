"""Operators that change nothing go, and lookups keep inside of their tables without TVM's warnings."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.support.models import Calls, called, check

X = torch.arange(24.0).reshape(4, 6)


def test_nothing_is_joined_to_something_without_a_copy() -> None:
    assert called(check(Calls(lambda x: torch.cat([x, x[:, 6:]], 1) + 1), X)) == ["add"]
    with_nothing, without = (
        called(check(Calls(lambda x, middle=middle: torch.cat([x[:, :2], *middle(x), x[:, 2:]], 1) * 2), X))
        for middle in (lambda x: [x[:, 6:]], lambda x: [])
    )
    assert with_nothing == without
    check(Calls(lambda x: torch.cat([x[:, 6:], x[:, 6:]], 1)), X)


def test_lookups_are_made_in_silence(capfd: pytest.CaptureFixture[str]) -> None:
    check(Calls(lambda i, table: table(i), table=nn.Embedding(10, 4)), torch.tensor([[0, 9], [3, 3]]))
    check(Calls(lambda x, i: x.index_select(1, i)), X, torch.tensor([5, 0]))
    assert "Fast mode" not in capfd.readouterr().err

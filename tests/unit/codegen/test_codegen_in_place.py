"""Writes into an input in place of a changed copy of it: what they compute, and where they would be wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import tvm
from tvm import relax

from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.in_place import write_in_place
from tests.support.models import LLVM, Calls, lowered

ROWS, CACHE = torch.arange(1.0, 11).reshape(2, 5), torch.linspace(-1, 1, 35).reshape(7, 5)
AT = torch.tensor(3)
Function = Callable[..., torch.Tensor]


def at(place: torch.Tensor) -> torch.Tensor:
    return (torch.arange(7) == place)[:, None]


def window(rows: torch.Tensor, cache: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    place = torch.arange(7) - at
    new = (rows * 2 + 1).index_select(0, place.clamp(0, 1))
    return torch.where(((place >= 0) & (place < 2))[:, None], new, cache)


IN_PLACE: dict[str, Function] = {
    "a window of computed rows": window,
    "all but one row": lambda rows, cache, p: torch.where(at(p), cache, rows[:1]),
    "a number": lambda rows, cache, p: cache.masked_fill(at(p), 9.0),
    "also read afterwards": lambda rows, cache, p: torch.where(at(p), rows[:1], cache) @ rows.T,
}
COPIED: dict[str, Function] = {
    "moved rows": lambda rows, cache, p: torch.where(at(p), rows[:1], cache.roll(1, 0)),
    "made of other elements": lambda rows, cache, p: torch.where(at(p), cache.flip(0), cache),
    "read elsewhere, too": lambda rows, cache, p: torch.where(at(p), rows[:1], cache) @ cache.T,
    "changed everywhere": lambda rows, cache, p: torch.where(at(p), rows[:1], cache * 2),
}


def called_in_place(function: Function) -> bool:
    """Compare what a function computes with PyTorch, and return whether its second input has changed."""
    mod = lowered(Calls(function), ROWS, CACHE, AT)
    result = write_in_place(mod, mod, [1])
    machine = relax.VirtualMachine(compile_module(result, LLVM), tvm.cpu())
    arguments = [tvm.runtime.tensor(each.numpy()) for each in (ROWS, CACHE, AT)]
    found = machine["main"](*arguments)
    np.testing.assert_allclose(found.numpy(), function(ROWS, CACHE, AT).numpy(), rtol=1e-6)
    for argument, before in zip((arguments[0], arguments[2]), (ROWS, AT), strict=True):
        assert (argument.numpy() == before.numpy()).all()
    return bool((arguments[1].numpy() != CACHE.numpy()).any())


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_copy_with_changes_is_written_in_place(name: str) -> None:
    assert called_in_place(IN_PLACE[name])


@pytest.mark.parametrize("name", COPIED)
def test_what_needs_the_input_as_it_was_copies_it(name: str) -> None:
    assert not called_in_place(COPIED[name])


def test_inputs_that_are_not_named_stay_as_they_are() -> None:
    mod = lowered(Calls(window), ROWS, CACHE, AT)
    assert "call_tir_inplace" not in write_in_place(mod, mod, [0, 2]).script()
    assert "call_tir_inplace" in write_in_place(mod, mod, [1]).script()

"""Weights that several programs of one model share: one layout for all of them, and one copy."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from tvm import relax

from loopwright.applying.lookup import lower
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.program.schedule import scheduled_function
from loopwright.codegen.serialization import trace_to_json
from loopwright.codegen.weights.packed_weight import packs_weight
from loopwright.codegen.weights.prepacking import fold_packing
from loopwright.codegen.weights.shared_weights import shares_weight, weights_apart
from loopwright.frontends import to_program
from loopwright.model import Model
from tests.support.draws import torch_draws
from tests.support.models import lowered
from tests.support.rule_programs import TARGET
from tuner.space.builtin import builtin_space

DRAWN = torch_draws()


class Nibbles(nn.Module):
    """A product with a weight of 4 bits, with a scale for each 32 of its depth."""

    def __init__(self, depth: int, columns: int) -> None:
        super().__init__()
        self.extents = (columns, depth // 32, 32)
        self.register_buffer("weight", torch.randint(0, 256, (columns, depth // 2), generator=DRAWN).to(torch.uint8))
        self.register_buffer("scale", torch.rand(columns, depth // 32, generator=DRAWN))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        numbers = torch.stack([self.weight & 15, self.weight >> 4], -1).reshape(self.extents).to(x.dtype) - 8
        return nn.functional.linear(x, (numbers * self.scale[..., None]).reshape(self.extents[0], -1))


def packed(model: nn.Module, rows: torch.Tensor, seed: int) -> tvm.IRModule:
    """Return a model with a schedule of the space in each function that has a weight."""
    source = Model(model.eval(), example_inputs=(rows,), shares_weights=True)
    mod = lower(to_program(source), TARGET)
    for var, func in prim_funcs(mod):
        if not shares_weight(func):
            continue
        workload = normal_form(func)
        space = builtin_space(workload, TARGET, 1)
        schedule = space.replay(space.seeds[seed % len(space.seeds)], 1)
        assert schedule is not None
        trace = json.loads(trace_to_json(schedule.trace))
        assert packs_weight(trace)
        mod.update_func(var, scheduled_function(func, workload, trace, TARGET))
    return fold_packing(mod)


@pytest.mark.parametrize(
    ("model", "depth"),
    [
        (nn.Linear(40, 33), 40),  # padded
        (nn.Linear(64, 96, bias=False), 64),
        (Nibbles(96, 48), 96),
        (Nibbles(64, 24), 64),  # no whole number of panels of two vectors
    ],
)
def test_programs_for_one_row_and_for_more_have_one_copy_of_a_packed_weight(model: nn.Module, depth: int) -> None:
    examples = [torch.randn(rows, depth, generator=DRAWN) for rows in (1, 6, 17)]
    programs = weights_apart([packed(model, rows, seed) for seed, rows in enumerate(examples)])
    largest = [max(weights, key=lambda each: each.numpy().size) for _, weights in programs]
    assert largest[0].numpy().ndim > 2
    assert len(set(largest)) == 1
    for (mod, weights), rows in zip(programs, examples, strict=True):
        machine = relax.VirtualMachine(compile_module(mod, TARGET), tvm.cpu())
        found = machine["main"](tvm.runtime.tensor(rows.numpy()), *weights).numpy()
        np.testing.assert_allclose(found, model(rows).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_the_layout_is_a_part_of_the_workload_on_both_sides_of_the_wire() -> None:
    model, rows = nn.Linear(24, 40), torch.randn(3, 24)
    [(_, own)] = prim_funcs(lowered(model, rows))
    [(_, shared)] = prim_funcs(lowered(model, rows, shares_weights=True))
    assert not shares_weight(own)
    assert shares_weight(shared)


def constants(*values: Any) -> tvm.IRModule:
    """Return a module that returns constants."""
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        with builder.dataflow():
            outputs = [builder.emit_output(relax.const(value)) for value in values]
        builder.emit_func_output(relax.Tuple(outputs))
    return builder.get()


def test_constants_that_differ_in_shape_dtype_or_values_stay_apart() -> None:
    zeros = np.zeros((2, 3), "float32")
    ones = zeros.copy()
    ones[-1, -1] = 1
    [(first, ours), (second, theirs)] = weights_apart(
        [constants(zeros, zeros.T.copy(), ones, zeros.copy()), constants(zeros.view("int32"), zeros, zeros.reshape(6))]
    )
    assert (len(ours), len(theirs)) == (3, 3)
    assert len({*ours, *theirs}) == 5
    assert len(first["main"].params) == len(second["main"].params) == 3

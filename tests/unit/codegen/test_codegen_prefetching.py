"""What the end of a tile reads and writes is fetched while its sums are computed, and nothing else is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, topi

from loopwright.codegen.program.annotations import may_be_scheduled
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.prefetching import PREFETCHES, with_prefetches
from loopwright.codegen.program.schedule import new_schedule, scheduled_module
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import MachineLimits
from loopwright.codegen.rules.cpu.conv_direct import ConvDirect
from loopwright.codegen.rules.cpu.register_tile import RegisterTile
from loopwright.codegen.serialization import trace_to_list
from tests.support.rule_programs import TARGET, function

MACHINE = MachineLimits.of(TARGET)


def _added(rows: int, columns: int, depth: int) -> tvm.IRModule:
    """A product, a bias and two residuals, one of which is turned."""
    a, b = te.placeholder((rows, depth), name="A"), te.placeholder((depth, columns), name="B")
    bias, turned = te.placeholder((columns,), name="bias"), te.placeholder((columns, rows), name="turned")
    residual = te.placeholder((rows, columns), name="residual")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    total = te.compute(c.shape, lambda i, j: c[i, j] + bias[j] + residual[i, j] + turned[j, i], name="total")
    return function(a, b, bias, residual, turned, total)


def _pixels(channels: int, outputs: int, *, is_turned: bool = False) -> tvm.IRModule:
    """A convolution of 1x1 over lines of 9 pixels, and a residual; the result may have the channels first."""
    image = te.placeholder((1, 5, 9, channels), name="image")
    kernel = te.placeholder((1, 1, channels, outputs), name="kernel")
    residual = te.placeholder((1, 5, 9, outputs), name="residual")
    i, j, k = (te.reduce_axis((0, n), name="r") for n in (1, 1, channels))
    c = te.compute(
        residual.shape,
        lambda n, y, x, o: te.sum(image[n, y + i, x + j, k] * kernel[i, j, k, o], axis=(i, j, k)),
        name="C",
    )
    total = te.compute(c.shape, lambda *at: c(*at) + residual(*at), name="total")
    return function(image, kernel, residual, topi.transpose(total, (0, 3, 1, 2)) if is_turned else total)


def _trace(mod: tvm.IRModule, rule: Any, **changed: int) -> list[Any]:
    program, schedule = AnalysedProgram.of(mod), new_schedule(mod)
    assert program is not None
    values = next(iter(rule.seeds(program, MACHINE)))
    rule.apply(schedule, program, MACHINE, {**values, **changed})
    return trace_to_list(schedule.trace)


def _fetched(mod: tvm.IRModule) -> list[str]:
    """Return what is fetched, as it is in the program's text."""
    return [line.strip() for line in mod["main"].script().splitlines() if "T.prefetch(" in line]


@pytest.mark.parametrize("outer", [0, 1])
def test_a_residual_and_the_result_are_fetched_and_the_sums_are_the_same(outer: int) -> None:
    """The rows, and the columns in vectors, are no whole number of tiles."""
    mod = _added(11, 260, 70)
    trace = _trace(mod, RegisterTile(), rows=4, outer=outer)
    scheduled = scheduled_module(mod, trace, TARGET)
    reads, writes = _fetched(scheduled)
    assert "residual[" in reads
    assert reads.endswith(", 0, 3, 1)")
    assert "total[" in writes
    assert writes.endswith(", 1, 3, 1)")
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal(tuple(map(int, each.shape))).astype("float32") for each in mod["main"].params]
    a, b, bias, residual, turned, _ = arrays
    tensors = [tvm.runtime.tensor(each) for each in arrays]
    compiled = compile_module(scheduled, TARGET)
    assert "llvm.prefetch" in compiled.inspect_source("ll")
    compiled["main"](*tensors)
    np.testing.assert_allclose(tensors[-1].numpy(), a @ b + bias + residual + turned.T, rtol=1e-4, atol=1e-4)


def test_convolutions_fetch_for_long_rows_of_deep_sums_only() -> None:
    counts = {
        shape: len(_fetched(scheduled_module(mod := _pixels(*shape), _trace(mod, ConvDirect()), TARGET)))
        for shape in ((64, 256), (48, 256), (64, 96))
    }
    assert counts == {(64, 256): 2, (48, 256): 0, (64, 96): 0}


def test_results_whose_neighbours_are_not_in_one_vector_are_not_fetched() -> None:
    mod = _pixels(64, 256, is_turned=True)
    trace = _trace(mod, ConvDirect())
    assert any(PREFETCHES in str(step) for step in trace[0])
    assert _fetched(scheduled_module(mod, trace, TARGET)) == []


def test_only_stores_of_a_result_in_vectors_are_fetched_for() -> None:
    """The annotation may be anywhere in a trace that somebody sends."""
    schedule = new_schedule(_added(8, 256, 64))
    for name in ("C", "total"):
        block = schedule.get_sblock(name)
        for loop in schedule.get_loops(block):
            schedule.annotate(loop, PREFETCHES, 1)
    assert _fetched(tvm.IRModule({"main": with_prefetches(schedule.mod["main"])})) == []
    assert may_be_scheduled(PREFETCHES, 1)
    assert not may_be_scheduled(PREFETCHES, 2)

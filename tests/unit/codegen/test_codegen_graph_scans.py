"""Cumulative sums and products along any axis, in vectors where axes are behind it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import tvm
from tvm import relax

from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.lowering import lower
from tests.support.draws import numpy_draws, torch_draws
from tests.support.models import Calls, called, check

_numpy, _torch = numpy_draws(), torch_draws()


@pytest.mark.parametrize(
    ("scan", "shape", "is_in_vectors"),
    [
        (lambda x: x.cumsum(1), (2, 9, 7), True),
        (lambda x: x.cumprod(0), (5, 4, 37), True),
        (lambda x: x.cumsum(1), (3, 4, 2149), True),
        (lambda x: x.cumsum(-1), (19, 6), False),
    ],
    ids=["a vector", "in registers", "in parts", "rows"],
)
def test_a_scan_runs_in_vectors_along_the_axes_behind(
    scan: Callable[[torch.Tensor], torch.Tensor], shape: tuple[int, ...], is_in_vectors: bool
) -> None:
    mod = check(Calls(scan), torch.randn(shape, generator=_torch))
    [name] = called(mod)
    assert name in ("cumsum", "cumprod")
    assert ("T.vectorized(" in mod.script()) == is_in_vectors


@pytest.mark.parametrize(("shape", "axis"), [((1, 40, 4001), 1), ((3000, 20), 1), ((2, 1, 600), 1), ((7, 5), None)])
@pytest.mark.parametrize("is_exclusive", [False, True])
def test_threads_share_a_long_scan(shape: tuple[int, ...], axis: int | None, is_exclusive: bool) -> None:
    target = tvm.target.Target({"kind": "llvm", "num-cores": 2})
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType(shape, "int32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(relax.op.cumsum(x, axis, "int64", exclusive=is_exclusive))
        builder.emit_func_output(result)
    mod = lower(builder.get(), target)
    data = _numpy.integers(-9, 9, shape).astype("int32")
    got = relax.VirtualMachine(compile_module(mod, target), tvm.cpu())["main"](tvm.runtime.tensor(data)).numpy()
    expected = data.astype("int64").cumsum(axis)
    before = data.reshape(-1) if axis is None else data
    np.testing.assert_array_equal(got, expected - before if is_exclusive else expected)
    assert ("T.parallel(" in mod.script()) == (data.size > 2**15)

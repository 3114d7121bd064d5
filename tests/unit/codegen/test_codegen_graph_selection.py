"""The few elements that ``topk`` chooses, in the order of a stable sort, without sorting the others."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax

from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.lowering import lower
from tests.support.draws import numpy_draws

_rng = numpy_draws()
_LEAST, _MOST = -(2**31), 2**31 - 1


@pytest.mark.parametrize(
    ("shape", "axis", "count", "is_largest", "dtype"),
    [
        ((5, 300), 1, 7, True, "int32"),
        ((3, 301), -1, 17, False, "int32"),
        ((2, 150), 1, 128, True, "int64"),
        ((90, 4), 0, 3, False, "int64"),
        ((2, 40, 3), 1, 40, True, "int32"),
        ((400, 100), 1, 1, False, "int32"),
    ],
)
def test_the_first_of_equal_elements_are_chosen(
    shape: tuple[int, ...], axis: int, count: int, is_largest: bool, dtype: str
) -> None:
    data = _rng.integers(-5, 5, shape).astype(dtype)
    data.flat[_rng.permutation(data.size)[:40]] = _rng.choice([_LEAST, _MOST], 40)
    target = tvm.target.Target({"kind": "llvm", "num-cores": 2})
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType(shape, dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(relax.op.topk(x, count, axis, "both", is_largest, "int64"))
        builder.emit_func_output(result)
    mod = lower(builder.get(), target)
    assert "contrib.sort" not in mod.script()
    run = relax.VirtualMachine(compile_module(mod, target), tvm.cpu())["main"]
    values, places = (each.numpy() for each in run(tvm.runtime.tensor(data)))
    order = np.argsort(~data if is_largest else data, axis=axis, kind="stable")
    expected = np.take(order, range(count), axis)
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(data, expected, axis))


def test_many_elements_are_sorted() -> None:
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType((2, 500), "int32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(relax.op.topk(x, 300, 1, "indices"))
        builder.emit_func_output(result)
    assert "contrib.sort" in lower(builder.get(), tvm.target.Target("llvm")).script()

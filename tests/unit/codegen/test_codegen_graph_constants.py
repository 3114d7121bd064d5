"""What follows from constants alone is computed once, under the rules of the operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from loopwright.codegen.graph.constants import fold_constants

VALUE = np.array([[1.0, -2.0, 4.0], [0.5, 8.0, -3.0]], dtype="float32")


def folded(make: Any, *values: Any) -> Any:
    """Return the value of an operator of constants; None if it is left in the module."""
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        with builder.dataflow():
            result = builder.emit_output(make(*(relax.const(value, str(value.dtype)) for value in values)))
        builder.emit_func_output(result)
    returned = fold_constants(builder.get())["main"].body.body
    return returned.value.numpy() if isinstance(returned, tvm.ir.GenericConst) else None


@pytest.mark.parametrize(
    ("make", "values", "expected"),
    [
        (relax.op.permute_dims, [VALUE], VALUE.T),
        (lambda x: relax.op.reshape(x, (3, 2)), [VALUE], VALUE.reshape(3, 2)),
        (relax.op.sqrt, [np.array(4.0, "float32")], np.array(2.0, "float32")),
        (relax.op.add, [VALUE, np.array(2.0, "float32")], VALUE + 2),
        (relax.op.multiply, [np.array([1 << 40]), np.array([3])], np.array([3 << 40])),
        (relax.op.less, [VALUE, np.zeros((2, 3), "float32")], VALUE < 0),
        (lambda x: relax.op.astype(x, "int32"), [VALUE], VALUE.astype("int32")),
        (lambda: relax.op.arange(1, 7, 2, "int64"), [], np.array([1, 3, 5])),
        (lambda x: relax.op.triu(x, 1), [VALUE], np.triu(VALUE, 1)),
        (lambda x: relax.op.tril(x, -1), [VALUE], np.tril(VALUE, -1)),
        (lambda: relax.op.full((2, 2), relax.const(True, "bool"), "bool"), [], np.full((2, 2), True)),
    ],
    ids=["permute", "reshape", "scalar", "broadcast", "int64", "compare", "cast", "range", "upper", "lower", "full"],
)
def test_operators_of_constants_are_constants(make: Any, values: list[Any], expected: Any) -> None:
    result = folded(make, *values)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(result, expected)


def test_integers_are_not_divided() -> None:
    assert folded(relax.op.divide, np.array([-7]), np.array([2])) is None


def test_a_value_that_would_fill_the_memory_is_not_made() -> None:
    assert folded(lambda: relax.op.zeros((2**30,), "float32")) is None
    assert folded(lambda: relax.op.arange(0, 2**30, 1, "int64")) is None
    assert folded(lambda x: relax.op.broadcast_to(x, (2**26, 3)), VALUE[:1]) is None

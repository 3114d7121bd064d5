"""Programs whose inputs may be padded, because each sample is computed from itself alone; and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tvm
from tvm import relax, te, tirx

from loopwright.codegen.program.batching import BatchAxis, batch_axis, not_batchlike
from loopwright.codegen.program.lowering import lower

TARGET = tvm.target.Target("llvm")
op = relax.op

COUNTING = """
@I.ir_module
class Counting:
    @T.prim_func(s_tir=True)
    def count(x_handle: T.handle, out: T.Buffer((T.int64(1),), "float32")):
        n = T.int64()
        x = T.match_buffer(x_handle, (n,), "float32")
        for i in range(n):
            with T.sblock("count"):
                v = T.axis.spatial(n, i)
                T.reads(out[0])
                T.writes(out[0])
                out[0] = out[0] + T.float32(1)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor((1,), "float32"):
        with R.dataflow():
            out = R.call_tir(Counting.count, (x,), out_ty=R.Tensor((1,), "float32"))
            R.output(out)
        return out
"""


def reason(compute: Callable[[Any, Any], Any], shape: Callable[[Any], tuple[Any, ...]]) -> str | None:
    """Why ``compute(x, builder)`` is not batch-like in n, for an input of the shape."""
    builder, n = relax.BlockBuilder(), tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType(shape(n), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(compute(x, builder))
        builder.emit_func_output(out)
    return reason_of(builder.get())


def reason_of(mod: tvm.IRModule) -> str | None:
    lowered = lower(mod, TARGET)
    [symbol] = relax.analysis.defined_symbolic_vars(lowered["main"])
    return not_batchlike(lowered, lowered["main"], symbol)


def rows(n: Any) -> tuple[Any, ...]:
    return (n, 6, 4)


def ones(*shape: int) -> Any:
    return op.ones(shape, "float32")


def attention(x: Any, builder: Any) -> Any:
    scores = builder.emit(op.nn.softmax(op.matmul(x, op.permute_dims(x, [0, 2, 1])), axis=-1))
    return op.matmul(scores, x)


@pytest.mark.parametrize(
    ("compute", "shape"),
    [
        (lambda x, _: op.nn.relu(op.matmul(x, ones(4, 8))), rows),
        (attention, rows),
        (lambda x, _: op.nn.softmax(x, axis=1), rows),
        (lambda x, _: op.permute_dims(x, [2, 0, 1]), rows),
        (lambda x, b: op.reshape(b.emit(op.nn.relu(b.emit(op.reshape(x, (-1, 4))))), (-1, 24)), rows),
        (lambda x, _: op.concat([x, x], axis=2), rows),
        (lambda x, _: op.nn.conv2d(x, ones(5, 3, 3, 3), padding=1), lambda n: (n, 3, 8, 8)),
        (lambda x, _: op.nn.relu(x), lambda n: (2, n, 4)),
        (
            lambda x, b: b.emit_te(lambda x: te.compute(x.shape, lambda i, j, k: x[i, j, k] + te.const(1.0) * i), x),
            rows,
        ),
    ],
)
def test_what_computes_each_sample_from_itself_is_batchlike(compute: Any, shape: Any) -> None:
    assert reason(compute, shape) is None


@pytest.mark.parametrize(
    ("compute", "shape", "told"),
    [
        (attention, lambda n: (2, n, 4), "n in several axes|samples"),
        (lambda x, _: op.nn.softmax(x, axis=0), rows, "softmax combines samples"),
        (lambda x, _: op.mean(x, axis=0), rows, "combines samples"),
        (lambda x, _: op.subtract(x, op.mean(x, axis=0, keepdims=True)), rows, "combines samples"),
        (lambda x, _: op.flip(x, axis=0), rows, "samples"),
        (lambda x, _: op.concat([x, x], axis=0), rows, "number of samples"),
        (lambda x, _: op.cumsum(x, axis=0), rows, "cumsum"),
        (lambda x, _: op.nn.conv2d(x, ones(5, 3, 3, 3), padding=1), lambda n: (1, 3, n, 8), "no multiple"),
        (lambda x, b: op.nn.relu(b.emit(op.reshape(x, (-1, 4)))), lambda n: (2, n, 4), "cuts samples"),
        (
            lambda x, b: b.emit_te(lambda x: te.compute(x.shape, lambda i, j, k: x[i, j, k] / x.shape[0]), x),
            rows,
            "number of samples",
        ),
        (
            lambda x, b: b.emit_te(lambda x: te.compute(x.shape, lambda i, j, k: x[i, j, k] + x[0, j, k]), x),
            rows,
            "combines samples",
        ),
        (lambda x, _: op.call_dps_packed("mine", (x,), x.ty), rows, "call_dps_packed"),
    ],
)
def test_what_may_combine_samples_is_not(compute: Any, shape: Any, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        assert (found := reason(compute, shape)) is None, found


def test_a_loop_that_runs_as_often_as_there_are_samples_may_not_sum_up() -> None:
    assert "count combines samples" in (reason_of(tvm.script.from_source(COUNTING)) or "")


def test_the_batch_axis_is_found_by_its_extent() -> None:
    n = tirx.Var("n", "int64")
    assert batch_axis([tirx.const(2, "int64"), n * 6], n) == BatchAxis(1, 6)
    assert batch_axis([tirx.const(2, "int64")], n) is None

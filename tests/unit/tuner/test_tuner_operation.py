"""Operations are told from structure: TVM's own workloads, and what Relax makes of its operators."""

from __future__ import annotations

import math

import pytest
import tvm
from tvm.s_tir.meta_schedule.testing import te_workload
from tvm.script import tirx as T

from benchmarks.gpu.workloads import product
from loopwright.codegen.gpu.tf32 import MATH, with_tf32
from loopwright.codegen.program.digest import normal_form
from tuner.inspection import submission
from tuner.operation import operation
from tuner.types import Operation, TensorInfo
from tuner.workload import make_workload

RELAX = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 4, 8, 8), "float32"), w: R.Tensor((6, 4, 3, 3), "float32"), g: R.Tensor((8,), "float32")):
        with R.dataflow():
            out = OUT
            R.output(out)
        return out
"""


@pytest.mark.parametrize(
    ("workload", "op"),
    [
        ("C1D", "conv1d"),
        ("C2D", "conv2d"),
        ("C3D", "conv3d"),
        ("CAP", "conv2d"),
        ("DEP", "depthwise_conv2d"),
        ("DIL", "conv2d"),
        ("GMM", "batch_matmul"),
        ("GRP", "group_conv2d"),
        ("T2D", "conv2d_transpose"),
        ("NRM", "norm"),
        ("SFM", "softmax"),
        ("CBR", "conv2d"),
        ("TBG", "batch_matmul"),
    ],
)
def test_operations_of_tvms_workloads(workload: str, op: str) -> None:
    found = operation(normal_form(te_workload.create_te_workload(workload, 0)))
    assert (found.op, found.dtype) == (op, "float32")
    assert found.flop is not None
    assert found.flop > 0


@pytest.mark.parametrize(
    ("expression", "op"),
    [
        ("R.matmul(g, R.reshape(w, (8, 27)))", "gemv"),
        ("R.nn.conv2d(x, w, padding=(1, 1))", "conv2d"),
        ("R.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2))", "max_pool2d"),
        ("R.nn.avg_pool2d(x, pool_size=(2, 2), strides=(2, 2))", "avg_pool2d"),
        ("R.nn.layer_norm(x, g, g, axes=[-1])", "norm"),
        ("R.nn.softmax(x, axis=-1)", "softmax"),
        ("R.permute_dims(x, axes=[0, 2, 3, 1])", "copy"),
        ("R.sum(x, axis=[1])", "reduction"),
        ("R.nn.relu(x)", "elementwise"),
    ],
)
def test_operations_of_relax(expression: str, op: str) -> None:
    (found,) = submission.parse("tvmscript", RELAX.replace("OUT", expression), '{"kind": "llvm"}', None, None)
    assert op in {task.workload.operation.op for task in found.tasks}


def test_a_products_flop() -> None:
    @T.prim_func(s_tir=True)
    def product(A: T.Buffer((16, 32), "int8"), B: T.Buffer((32, 8), "int8"), C: T.Buffer((16, 8), "int32")):  # type: ignore[no-untyped-def,valid-type]
        for i, j, k in T.grid(16, 8, 32):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vk, vj], "int32")

    workload = make_workload(product, "product")
    assert workload.operation == Operation("matmul", "int32", 2.0 * 16 * 32 * 8)


def test_what_may_round_to_tf32_computes_in_tf32() -> None:
    mod = with_tf32(normal_form(product(16, 16, 16, "float32", "float32")))
    assert (operation(mod).op, operation(mod).dtype) == ("matmul", "tf32")
    assert make_workload(mod["main"], "product").math == "tf32"
    assert make_workload(mod["main"].without_attr(MATH), "product").math == "fp32"


def test_a_function_without_axes_computes_nothing_known() -> None:
    assert operation(tvm.IRModule({"main": tvm.tirx.PrimFunc([], tvm.tirx.Evaluate(0))})) == Operation()


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2), ("int8", 1), ("bool", 1), ("uint1", 1)])
def test_bytes_of_an_argument(dtype: str, size: int) -> None:
    assert TensorInfo((3, 5), dtype).bytes == math.prod((3, 5, size))

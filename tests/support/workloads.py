"""Programs with the same arguments: a product with relu, and some that are wrong or harmful in its place."""

from __future__ import annotations

import json

import numpy as np
import tvm

from tests.support.programs import product_relu
from tuner.types import Workload
from tuner.workload import make_workload

SIZE = 32
LLVM = json.dumps({"kind": "llvm", "num-cores": 2})
CUDA = json.dumps(
    {
        "kind": "cuda",
        "arch": "sm_90",
        "max_shared_memory_per_block": 49152,
        "max_threads_per_block": 1024,
        "thread_warp_size": 32,
        "registers_per_block": 65536,
    }
)

_HEAD = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main({args}):
        T.func_attr({{"tirx.noalias": True}})
{body}
"""

_ELEMENTWISE = """
for i, j in T.grid({rows}, {n}):
    with T.sblock("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        {statement}
"""

# A recurrence that no compiler takes out of its loops.
_HANG = """
for i in range(1048576):
    for j in range(1048576):
        C[0, 0] = C[0, 0] * A[0, 0] + B[0, 0]
"""


def _workload(name: str, body: str) -> Workload:
    args = ", ".join(f'{arg}: T.Buffer(({SIZE}, {SIZE}), "float32")' for arg in "ABC")
    indented = "\n".join("        " + line for line in body.strip().splitlines())
    mod = tvm.script.from_source(_HEAD.format(args=args, body=indented))
    return make_workload(mod["main"], name)


def product(size: int = SIZE, dtype: str = "float32") -> Workload:
    return make_workload(tvm.script.from_source(product_relu(size, dtype))["main"], "product")


def elementwise(statement: str = "C[vi, vj] = A[vi, vj] + B[vi, vj]", rows: int = SIZE) -> Workload:
    return _workload("elementwise", _ELEMENTWISE.format(rows=rows, n=SIZE, statement=statement))


def hang() -> Workload:
    return _workload("hang", _HANG)


def crash() -> Workload:
    return elementwise("C[vi * 1000000, vj] = A[vi, vj] + B[vi, vj]", rows=32)


def killed() -> Workload:
    """A program whose process dies by SIGKILL whenever it runs, as the kernel's choice when memory is short."""
    return elementwise('C[vi, vj] = T.Cast("float32", T.call_extern("int32", "raise", 9))')


def expected_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(a @ b, 0)

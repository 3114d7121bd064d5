"""Functions that may leave their buffers are not taken, and say where; an operator may allow them."""

from __future__ import annotations

from tests.integration.service.conftest import Api

STACK = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((1,), "int64"), C: T.Buffer((1,), "int64")):
    S = T.sblock_alloc_buffer((4,), "int64")
    for i in range(1):
        with T.sblock("C"):
            vi = T.axis.spatial(1, i)
            T.reads(A[0])
            T.writes(C[vi])
            S[A[0]] = T.int64(1)
            for k in range(A[0] + T.int64(64)):
                C[vi + k] = S[A[0] + k]
"""
"""Reads the caller's stack and writes beyond its output."""
GATHER = """
from tvm.script import ir as I
from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((100, 8), "float32"), i: R.Tensor((5,), "int64")) -> R.Tensor((5, 8), "float32"):
        with R.dataflow():
            y = R.take(x, i, axis=0)
            R.output(y)
        return y
"""


def _body(script: str) -> dict[str, object]:
    return {"module": {"format": "tvmscript", "data": script}, "budget": {"max_trials": 4}}


def test_an_index_that_data_decides_is_refused_and_named(api: Api) -> None:
    for path in ("/jobs/preview", "/jobs"):
        problem = api.post(path, _body(STACK), status=422)
        assert problem["type"].endswith("invalid-module")
        for token in ("main", "S[A[0]]", "T.min"):
            assert token in problem["detail"]


def test_what_gathers_is_taken(api: Api) -> None:
    previewed = api.post("/jobs/preview", _body(GATHER))
    assert [task["name"] for task in previewed["tasks"]] == ["take"]
    assert previewed["left_alone"] == []

"""Nothing of what was submitted runs in order to be read: the planted function never ends."""

from __future__ import annotations

import time
from typing import Any

import pytest
import tvm
from tvm.target import Target

from loopwright.codegen.program.lowering import lower
from loopwright.frontends.tvmscript import module_from_script
from tests.integration.service.conftest import Api

PLANTED = """
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def planted(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("b"):
                v = T.axis.spatial(4, i)
                b[v] = a[v]
                while b[v] >= a[v]:
                    b[v] = a[v]

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.planted, (R.const([1.0, 2.0, 3.0, 4.0], "float32"),), out_ty=R.Tensor((4,), "float32"))
            z = R.add(x, y)
            R.output(z)
        return z
"""
BODY = {"module": {"format": "tvmscript", "data": PLANTED}, "budget": {"max_trials": 4}}


@pytest.fixture(scope="module")
def lowered() -> tvm.IRModule:
    return lower(module_from_script(PLANTED), Target("llvm"))


def test_the_function_is_called_by_what_was_lowered(lowered: tvm.IRModule) -> None:
    """Its result is not known: to have it, it must run."""
    assert "planted" in lowered["main"].script()


def test_no_way_of_reading_a_module_runs_it(api: Api) -> None:
    started = time.monotonic()
    previewed = api.post("/jobs/preview", BODY)
    assert any("planted" in task["name"] for task in previewed["tasks"])
    job: dict[str, Any] = api.post("/jobs", BODY, status=202)
    api.get(f"/jobs/{job['id']}/module")
    assert time.monotonic() - started < 25, "a child of the sandbox was stopped at its deadline"

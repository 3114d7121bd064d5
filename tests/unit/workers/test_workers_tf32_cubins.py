"""Candidates with TF32 become machine code that multiplies in TF32, on machines without a GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import tvm
from tvm import te, topi

from loopwright.codegen.gpu.tf32 import with_tf32
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.program.schedule import apply_trace_json
from loopwright.codegen.serialization import trace_to_json
from loopwright.codegen.target import target_from, with_assumed_attributes
from tests.support.gpu_programs import PROGRAMS
from tests.support.nvrtc import cubin, ptx
from tuner.space.builtin import builtin_space
from workers.device import cuda


def transposed() -> tvm.tirx.PrimFunc:
    """Return a product with a dense layer's weight, whose rows are the columns of the result, and a bias."""
    x, w = te.placeholder((256, 512), name="X"), te.placeholder((512, 512), name="W")
    bias = te.placeholder((512,), name="B")
    return te.create_prim_func([x, w, bias, topi.nn.relu(topi.nn.dense(x, w, bias))])


FUNCTIONS: dict[str, Callable[[], tvm.tirx.PrimFunc]] = {
    "product": PROGRAMS["product fp32"],
    "product with a transposed factor": transposed,
    "convolution": PROGRAMS["convolution fp32"],
}


def sources(func: tvm.tirx.PrimFunc, arch: str, count: int) -> list[str]:
    """Return the CUDA code of candidates with TF32, drawn at random from the sketches that have it.

    One candidate is the shortest of five, which NVRTC compiles soonest.
    """
    mod, target = with_tf32(normal_form(func)), target_from({"kind": "cuda", "arch": arch})
    space = builtin_space(mod, target, 1)
    sketches = [trace for trace in space.traces if "tf32" in str(trace)]
    drawn = filter(None, (space.replay(sketches[seed % len(sketches)], seed) for seed in range(1, 1000)))
    complete = with_assumed_attributes(target)
    traces = [trace_to_json(next(drawn).trace) for _ in range(max(count, 5))]
    return sorted((cuda.source(apply_trace_json(mod, trace).mod, complete) for trace in traces), key=len)[:count]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "arch", "count"),
    [
        ("product", "sm_90", 1),
        pytest.param("product with a transposed factor", "sm_80", 1, marks=pytest.mark.whole),
        *(pytest.param(name, arch, 10, marks=pytest.mark.whole) for name in FUNCTIONS for arch in ("sm_80", "sm_90")),
    ],
)
def test_candidates_become_machine_code_that_multiplies_in_tf32(name: str, arch: str, count: int) -> None:
    found = sources(FUNCTIONS[name](), arch, count)
    assert all(cubin(source, arch).startswith(b"\x7fELF") for source in found)
    for source in found[:2]:
        assembly = ptx(source, arch)
        assert any(".mma." in line and ".tf32" in line for line in assembly.splitlines())
        assert "cvt.rna.tf32.f32" in assembly

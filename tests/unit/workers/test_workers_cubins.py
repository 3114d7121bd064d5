"""Candidates for GPUs become machine code, on machines without a GPU."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from loopwright.codegen.errors import last_line
from loopwright.codegen.gpu.async_copy import ASYNC_STAGES
from loopwright.codegen.gpu.compiler_errors import compiler_errors
from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from, with_assumed_attributes
from tests.support.gpu_programs import PROGRAMS
from tests.support.nvrtc import cubin
from tuner.space.builtin import builtin_space
from tuner.types import Workload
from tuner.workload import make_workload
from workers.device import cuda

ARCHITECTURES = ("sm_80", "sm_90")
KEPT = {"product bf16, sums fp32": "sm_80"}
"""What the round compiles, and for which architecture: NVRTC takes seconds for each program."""
LEAST_OF_20 = dict.fromkeys(PROGRAMS, 19)
"""Candidates that build, of 20 of each workload: measured are 20 each."""


def samples(workload: Workload, arch: str, count: int, sketch: str = "") -> list[str]:
    """Return traces of the built-in space with random decisions that the space accepts, of sketches with a text."""
    target = target_from({"kind": "cuda", "arch": arch})
    space = builtin_space(module_from_json(workload.module_json), target, 1)
    sketches = [trace for trace in space.traces if sketch in str(trace)]
    drawn = (space.replay(sketches[seed % len(sketches)], seed) for seed in range(1, 1000))
    accepted = [trace_to_json(schedule.trace) for schedule in islice(filter(None, drawn), count)]
    assert len(accepted) == count, "the space accepts too little"
    return accepted


def failure(workload: Workload, trace_json: str | None, arch: str) -> str | None:
    """Return why a candidate does not become machine code; None if it does."""
    target = with_assumed_attributes(target_from({"kind": "cuda", "arch": arch}))
    trace = None if trace_json is None else json.loads(trace_json)
    try:
        source = cuda.source(scheduled_module(module_from_json(workload.module_json), trace, target), target)
        return None if cubin(source, arch).startswith(b"\x7fELF") else "no ELF"
    except Exception as error:
        return compiler_errors(str(error)) or last_line(error)


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        pytest.param(name, arch, marks=[] if KEPT.get(name) == arch else [pytest.mark.whole])
        for name in PROGRAMS
        for arch in ARCHITECTURES
    ],
)
def test_a_candidate_for_each_architecture_becomes_machine_code(name: str, arch: str) -> None:
    workload = make_workload(PROGRAMS[name](), name)
    [trace] = samples(workload, arch, 1)
    assert failure(workload, trace, arch) is None


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "annotation"),
    [
        (name, annotation)
        for name in ("product fp16, sums fp32", "product bf16, sums fp32")
        for annotation in (ASYNC_STAGES, "double_buffer_scope")
    ],
)
def test_a_candidate_with_software_pipelines_becomes_machine_code(name: str, annotation: str) -> None:
    workload = make_workload(PROGRAMS[name](), name)
    [trace] = samples(workload, "sm_80", 1, annotation)
    assert failure(workload, trace, "sm_80") is None


@pytest.mark.whole
@pytest.mark.parametrize("name", PROGRAMS)
def test_of_twenty_candidates_enough_become_machine_code(name: str) -> None:
    workload = make_workload(PROGRAMS[name](), name)
    outcomes = [failure(workload, trace, arch) for arch in ARCHITECTURES for trace in samples(workload, arch, 10)]
    assert outcomes.count(None) >= LEAST_OF_20[name], outcomes


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        pytest.param("product bf16, sums fp32", "sm_90", marks=pytest.mark.whole),
        pytest.param("product int8, sums int32", "sm_90", marks=pytest.mark.whole),
        ("product fp16, sums fp32", "sm_75"),  # has 64 KiB of shared memory
    ],
)
def test_the_baseline_of_a_product_becomes_machine_code(name: str, arch: str) -> None:
    assert failure(make_workload(PROGRAMS[name](), name), None, arch) is None

"""Building for llvm and for cuda, on a machine that may have neither a compiler nor a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import te, topi

from benchmarks.gpu.workloads import product as product_of_types
from loopwright.codegen.host import lock as host_lock
from loopwright.codegen.kinds import FailureKind, Stage
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from tests.support import workloads as programs
from tests.support.cases import first
from tuner.space.builtin import builtin_space
from tuner.types import Failure, Workload
from tuner.workload import make_workload
from workers.child import child_calls
from workers.child.build_fork import BuildFork
from workers.child.warm_child import WarmChild
from workers.device import build, cuda
from workers.messages import (
    Artifact,
    ArtifactFormat,
    BuildRequest,
    Candidate,
    Device,
    MeasureBatch,
    Samples,
)
from workers.walls.levels import Level


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and locks of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(host_lock, "directory", lambda: tmp_path)


def built(workload: Workload, trace_json: str | None = None, target: str = programs.LLVM) -> Artifact:
    (artifact,) = build.build(BuildRequest(workload.module_json, trace_json, target))
    return artifact


def traces(workload: Workload, target: str, count: int = 3, having: str = "") -> list[str]:
    """Traces of the built-in space with random decisions, replayed and accepted, whose JSON has a part."""
    space = builtin_space(module_from_json(workload.module_json), target_from(target), 1)
    found = []
    sketches = [trace for trace in space.traces if having in trace_to_json(trace)]
    for seed in range(1, 200):
        schedule = space.replay(sketches[seed % len(sketches)], seed)
        if schedule is not None:
            found.append(trace_to_json(schedule.trace))
        if len(found) == count:
            return found
    raise AssertionError("the space accepts too little")


def softmax() -> Workload:
    x = te.placeholder((64, 256), "float32", name="X")
    return make_workload(te.create_prim_func([x, topi.nn.softmax(x)]), "softmax")


def run(artifact: Artifact, workload: Workload) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(info.shape).astype(info.dtype) for info in workload.args]
    arguments = [tvm.runtime.tensor(array) for array in arrays]
    build.load(artifact)["main"](*arguments)
    return arguments[-1].numpy(), programs.expected_product(*arrays[:2])


def test_llvm_baseline_and_candidates_compute_right() -> None:
    workload = programs.product()
    candidates = traces(workload, programs.LLVM)
    before = built(workload, candidates[0])
    for trace in [None, *candidates]:
        artifact = built(workload, trace)
        assert artifact.format is ArtifactFormat.SHARED_LIBRARY
        got, wanted = run(artifact, workload)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
    assert built(workload, candidates[0]) == before, "what a process has built before changes no code"
    assert not list(Path.cwd().glob("**/code.*")), "a build leaves no file behind"


def test_llvm_needs_neither_compiler_nor_linker() -> None:
    workload = programs.product()
    child = WarmChild(
        ["workers.device.build", "workers.device.timing"],
        {"PATH": "/nonexistent", "TVM_NUM_THREADS": "1"},
        level=Level.NONE,  # the lock of this test is not where a child behind walls may look
    )
    fork = BuildFork(child)
    try:
        artifact = child_calls.BUILD.tried(child, BuildRequest(workload.module_json, None, programs.LLVM), seconds=60)
        assert isinstance(artifact, Artifact)
        assert artifact.format is ArtifactFormat.LLVM_IR
        batch = MeasureBatch(workload.args, (Candidate("key", artifact),))
        *_, last = child_calls.MEASURE.stream(child, Device("llvm", 0), batch, seconds=60)
        assert isinstance(last.result, Samples)
        broken = traces(workload, programs.LLVM, 1)[0].replace('"GetSBlock"', '"GetNothing"')
        failure = child_calls.BUILD.tried(child, BuildRequest(workload.module_json, broken, programs.LLVM), seconds=60)
        assert isinstance(failure, Failure)
        assert (failure.stage, failure.kind) == (Stage.BUILD, FailureKind.COMPILE)
        assert "GetNothing" in failure.message
        assert len(failure.message) < 4100
        good = traces(workload, programs.LLVM, 2)
        chain = [
            fork.build(BuildRequest(workload.module_json, trace, programs.LLVM), "me", 60)
            for trace in (*good, broken, good[0])
        ]
        assert [type(each) for each in chain] == [Artifact, Artifact, Failure, Artifact]
        assert chain[1] != chain[0]
        assert chain[2] == failure
    finally:
        fork.rest(0.0, 0.0)  # its session has the child
        child.close()


def test_a_trace_of_another_workload_is_refused_in_words() -> None:
    foreign = traces(softmax(), programs.LLVM, 1)[0]
    with pytest.raises(Exception, match=r"(?i)block"):
        built(programs.product(), foreign)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_cuda_candidates_of_a_product_become_source(dtype: str) -> None:
    workload = programs.product(128, dtype)
    sources = {built(workload, trace, programs.CUDA).code for trace in traces(workload, programs.CUDA, 2)}
    assert len(sources) == 2
    for source in sources:
        assert "__global__ void" in source
        assert "threadIdx.x" in source
        assert ("half" if dtype == "float16" else "float") in source


@pytest.mark.parametrize(
    ("dtype", "sums"), first(1, [("float16", "float32"), ("bfloat16", "float32"), ("int8", "int32")])
)
def test_tensor_cores_sum_in_a_wider_type(dtype: str, sums: str) -> None:
    """TVM's passes let the sums lie where the factors lay, and then refuse most of these for the types' sake."""
    workload = make_workload(product_of_types(512, 512, 512, dtype, sums), "product")
    [trace] = traces(workload, programs.CUDA, 1, having="meta_schedule.auto_tensorize")
    assert "wmma::mma_sync" in built(workload, trace, programs.CUDA).code


def test_cuda_candidates_of_a_softmax_become_source() -> None:
    workload = softmax()
    for trace in traces(workload, programs.CUDA, 2):
        assert "__global__ void" in built(workload, trace, programs.CUDA).code


@pytest.mark.parametrize(
    "workload",
    [
        programs.product(64),
        softmax(),
        programs.elementwise(),
        make_workload(product_of_types(128, 128, 128, "int8", "int32"), "int8"),
    ],
    ids=lambda workload: workload.name,
)
def test_the_cuda_baseline_is_a_bound_schedule(workload: Workload) -> None:
    artifact = built(workload, None, programs.CUDA)
    assert artifact.format is ArtifactFormat.CUDA_SOURCE
    assert "threadIdx.x" in artifact.code


def test_cuda_source_is_not_loaded_and_the_reason_names_the_remedy() -> None:
    artifact = built(programs.elementwise(), None, programs.CUDA)
    with pytest.raises(RuntimeError, match=r"libcudart.*nvcc.*C\+\+ compiler"):
        build.load(artifact)


def test_a_gpu_host_without_compilers_is_told_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "runtime_loads", lambda: True)
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(RuntimeError, match=r"nvcc .*C\+\+ compiler"):
        built(programs.elementwise(), None, programs.CUDA)

"""Loopwright's warm children behind MetaSchedule's own builder and runner interfaces (arm A1)."""

from __future__ import annotations

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms

from loopwright.codegen.serialization import module_to_json
from tuner.codec import encode
from tuner.types import Failure, TensorInfo
from workers import child_calls
from workers.messages import BuildRequest
from workers.walls.levels import Level
from workers.warm_child import ChildError, WarmChild

_SECONDS = 30.0


@derived_object
class WarmBuilder(ms.builder.PyBuilder):
    """Builds a batch in one warm child per core of the target."""

    def __init__(self, target_json: str) -> None:
        super().__init__()
        self._target = target_json
        cores = json.loads(target_json)["num-cores"]
        self._children = [
            WarmChild([child_calls.BUILD.module], {"TVM_NUM_THREADS": "1"}, level=Level.NONE) for _ in range(cores)
        ]
        self._pool = ThreadPoolExecutor(cores)
        self._folder = tempfile.mkdtemp(prefix="loopwright-bench-")
        self._count = 0

    def build(self, build_inputs: list[Any]) -> list[Any]:
        return list(self._pool.map(self._build, range(len(build_inputs)), build_inputs))

    def _build(self, position: int, build_input: Any) -> Any:
        request = BuildRequest(module_to_json(build_input.mod), None, self._target)
        child = self._children[position % len(self._children)]
        artifact = child_calls.BUILD.tried(child, request, seconds=_SECONDS)
        if isinstance(artifact, Failure):
            return ms.builder.BuilderResult(None, artifact.message)
        self._count += 1
        path = Path(self._folder) / f"{self._count}.json"
        path.write_text(json.dumps(encode(artifact)))
        return ms.builder.BuilderResult(str(path), None)


@derived_object
class WarmRunner(ms.runner.PyRunner):
    """Runs a batch in one warm child, with the default settings of stock's runner."""

    def __init__(self, target_json: str) -> None:
        super().__init__()
        threads = str(json.loads(target_json)["num-cores"])
        self._child = WarmChild(["benchmarks.search.stock_timing"], {"TVM_NUM_THREADS": threads}, level=Level.NONE)

    def run(self, runner_inputs: list[Any]) -> list[Any]:
        return [self._run(runner_input) for runner_input in runner_inputs]

    def _run(self, runner_input: Any) -> Any:
        artifact = json.loads(Path(runner_input.artifact_path).read_text())
        Path(runner_input.artifact_path).unlink()
        args = [TensorInfo(tuple(map(int, info.shape)), str(info.dtype)) for info in runner_input.args_info]
        try:
            samples = self._child.call(
                "benchmarks.search.stock_timing:run", {"args": args, "artifact": artifact}, _SECONDS
            )
            result = ms.runner.RunnerResult(samples, None)
        except ChildError as error:
            result = ms.runner.RunnerResult(None, str(error))
        return ms.runner.RunnerFuture(f_done=lambda: True, f_result=lambda: result)

"""The Ray actors of a node: builders, and one measurer a device, each around a kept-warm, disposable child.

Values that cross are JSON; what a child could not answer comes back as ``{"failure": {stage, kind, message}}``.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

import psutil
import ray

from tuner.types import FailureKind, Stage
from workers.warm_child import ChildCrashed, ChildRaised, ChildTimeout, WarmChild

CONTROL = "control"
"""The concurrency group of pings, so that they are answered while a child is at work."""
BUILD_SECONDS = 60.0
MEASURE_SECONDS = 30.0
RACE_SECONDS = 300.0
_BUILD_MEMORY = 6 * 2**30
_MEASURE_MEMORY = psutil.virtual_memory().total // 4 * 3
_SIGKILL = 9
_LAST_LINES = 600


def failure(stage: Stage, kind: FailureKind, message: str) -> dict[str, Any]:
    return {"failure": {"stage": stage, "kind": kind, "message": message}}


def attempt(stage: Stage, action: Callable[[], Any]) -> Any:
    """The action's value, or what went wrong with it as a failure."""
    try:
        return action()
    except ChildTimeout as error:
        return failure(stage, FailureKind.TIMEOUT, str(error))
    except ChildRaised as error:
        kind = FailureKind.COMPILE if stage is Stage.BUILD else FailureKind.CRASH
        return failure(stage, kind, f"{error.kind}: {error}")
    except ChildCrashed as error:
        # Programs crash by SIGSEGV, SIGFPE and the like. SIGKILL comes from outside (an operator, the kernel short of
        # memory), which says nothing about the program: try again.
        kind = FailureKind.DEVICE_LOST if error.signal == _SIGKILL else FailureKind.CRASH
        return failure(stage, kind, f"{error} {error.stderr[-_LAST_LINES:]}".strip())


class Builder:
    """Builds one candidate at a time.

    Args:
        cuda: it stands beside a GPU, and so loads what cuda candidates need before they come.
        seconds: a build's deadline.
    """

    def __init__(self, cuda: bool, seconds: float = BUILD_SECONDS) -> None:
        self._seconds = seconds
        self._module = "workers.build_cuda" if cuda else "workers.build"
        self._child = WarmChild([self._module], {"TVM_NUM_THREADS": "1"}, _BUILD_MEMORY, busy=True)
        self._child.start()

    @ray.method(concurrency_group=CONTROL)
    def ping(self) -> dict[str, Any]:
        return {"host": socket.gethostname(), "pid": os.getpid()}

    def build(self, module_json: str, trace_json: str | None, target_json: str) -> dict[str, Any]:
        """``{"artifact": …}`` or a failure."""
        arguments = {"module_json": module_json, "trace_json": trace_json, "target_json": target_json}
        return attempt(
            Stage.BUILD,
            lambda: {"artifact": self._child.call(f"{self._module}:build", arguments, self._seconds)},
        )


class Measurer:
    """The measuring slot of one device.

    Args:
        device: "cpu" or "cuda:N".
        threads: what TVM's runtime is told to use.
        backend: the module whose ``measure`` and ``race`` run in the child; tests put a simulated device here.
        seconds: a candidate's deadline for being measured.
    """

    def __init__(
        self, device: str, threads: int, backend: str = "workers.timing", seconds: float = MEASURE_SECONDS
    ) -> None:
        self._seconds = seconds
        self._kind, self._index = ("cuda", int(device.split(":")[1])) if device.startswith("cuda") else ("llvm", 0)
        self._backend = backend
        self._child = WarmChild(
            [backend],
            # TVM halves the cores it sees for hyper-threads that a virtual machine does not show.
            {"TVM_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)},
            # CUDA maps far more than it uses.
            memory_bytes=_MEASURE_MEMORY if self._kind == "llvm" else 0,
        )
        self._child.start()

    @ray.method(concurrency_group=CONTROL)
    def ping(self) -> dict[str, Any]:
        return {"host": socket.gethostname(), "pid": os.getpid()}

    def measure(self, args: list[Any], candidates: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """For each ``{"artifact", "cutoff"}``: ``{"run_secs": […]}`` or a failure, in order."""
        results: dict[int, dict[str, Any]] = {}
        while len(results) < len(candidates):
            self._measure_rest(args, candidates, results)
        return [results[position] for position in range(len(candidates))]

    def _measure_rest(
        self, args: list[Any], candidates: list[dict[str, Any]], results: dict[int, dict[str, Any]]
    ) -> None:
        """Measure what has no result yet in one fork; a failure may end it, but never before it adds a result."""
        rest = [position for position in range(len(candidates)) if position not in results]
        working_on = rest[0]

        def run() -> None:
            nonlocal working_on
            arguments = {
                "target_kind": self._kind,
                "device_index": self._index,
                "args": args,
                "candidates": [candidates[position] for position in rest],
            }
            for value in self._child.stream(f"{self._backend}:measure", arguments, self._seconds):
                working_on = rest[value["candidate"]]
                if "error" in value:
                    results[working_on] = failure(Stage.RUN, FailureKind.CRASH, value["error"])
                elif "run_secs" in value:
                    results[working_on] = {"run_secs": value["run_secs"]}

        ended = attempt(Stage.RUN, run)
        if ended is None and not results.keys() & set(rest):
            ended = failure(Stage.RUN, FailureKind.CRASH, "the child ended without an answer")
        if ended is not None and working_on not in results:
            results[working_on] = ended

    def race(
        self,
        args: list[Any],
        outputs: list[bool],
        reference: dict[str, Any],
        contenders: list[dict[str, Any]],
        seed: int,
    ) -> dict[str, Any]:
        """``{"contenders": […]}`` as `workers.race.race` yields it, or a failure."""
        arguments = {
            "target_kind": self._kind,
            "device_index": self._index,
            "args": args,
            "outputs": outputs,
            "reference": reference,
            "contenders": contenders,
            "seed": seed,
        }
        return attempt(Stage.CERTIFY, lambda: self._child.call(f"{self._backend}:race", arguments, RACE_SECONDS))

"""The Ray actors of a node: builders, and one measurer a device, each around a kept-warm, disposable child.

Values that cross are JSON; what a child could not answer comes back as ``{"failure": {stage, kind, message}}``.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import time
from collections.abc import Callable, Iterator
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
_REFERENCE = "workers.reference"
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
        label: how timelines call it.
    """

    def __init__(self, cuda: bool, seconds: float = BUILD_SECONDS, label: str = "builder") -> None:
        self._seconds = seconds
        self._label = label
        self._busy = False
        self._module = "workers.build_cuda" if cuda else "workers.build"
        self._child = WarmChild(
            [self._module, "workers.first_build"], {"TVM_NUM_THREADS": "1"}, _BUILD_MEMORY, busy=True
        )
        self._child.start()

    @ray.method(concurrency_group=CONTROL)
    def ping(self) -> dict[str, Any]:
        return {"host": socket.gethostname(), "pid": os.getpid(), "busy": self._busy}

    def build(
        self, module_json: str, trace_json: str | None, target_json: str, seconds: float = math.inf
    ) -> dict[str, Any]:
        """``{"artifact": …}`` or a failure; either with ``span``: who, start and end in seconds since 1970.

        ``seconds`` is a deadline for this build, where it is shorter than the builder's own.
        """
        arguments = {"module_json": module_json, "trace_json": trace_json, "target_json": target_json}
        started = time.time()
        self._busy = True
        try:
            answer = attempt(
                Stage.BUILD,
                lambda: {"artifact": self._child.call(f"{self._module}:build", arguments, min(seconds, self._seconds))},
            )
        finally:
            self._busy = False
        return answer | {"span": [self._label, started, time.time()]}


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
        self._threads = threads
        self._slot = _Slot()
        self._built: dict[str, dict[str, Any]] = {}
        """The reference kernels, by target: compiling them each time would cost a GPU's host seconds."""
        self._kind, self._index = ("cuda", int(device.split(":")[1])) if device.startswith("cuda") else ("llvm", 0)
        self._backend = backend
        self._child = WarmChild(
            [backend, _REFERENCE],
            # TVM halves the cores it sees for hyper-threads that a virtual machine does not show.
            {"TVM_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)},
            # CUDA maps far more than it uses.
            memory_bytes=_MEASURE_MEMORY if self._kind == "llvm" else 0,
        )
        self._child.start()

    @ray.method(concurrency_group=CONTROL)
    def ping(self) -> dict[str, Any]:
        return {"host": socket.gethostname(), "pid": os.getpid(), **self._slot.told()}

    def measure(self, args: list[Any], candidates: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """For each ``{"key", "artifact", "cutoff"}``: ``{"run_secs": […]}`` or a failure, in order.

        Each comes with ``span``: start and end of its own part, in seconds since 1970.
        """
        results: dict[int, dict[str, Any]] = {}
        with self._slot.used():
            while len(results) < len(candidates):
                self._measure_rest(args, candidates, results)
        return [results[position] for position in range(len(candidates))]

    def _measure_rest(
        self, args: list[Any], candidates: list[dict[str, Any]], results: dict[int, dict[str, Any]]
    ) -> None:
        """Measure what has no result yet in one fork; a failure may end it, but never before it adds a result."""
        rest = [position for position in range(len(candidates)) if position not in results]
        working_on = rest[0]
        since = time.time()

        def run() -> None:
            nonlocal working_on, since
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
                else:
                    since = time.time()
                    self._slot.trial = candidates[working_on].get("key")
                    continue
                results[working_on]["span"] = [since, time.time()]

        ended = attempt(Stage.RUN, run)
        if ended is None and not results.keys() & set(rest):
            ended = failure(Stage.RUN, FailureKind.CRASH, "the child ended without an answer")
        if ended is not None and working_on not in results:
            results[working_on] = ended | {"span": [since, time.time()]}

    def race(
        self,
        args: list[Any],
        outputs: list[bool],
        reference: dict[str, Any],
        contenders: list[dict[str, Any]],
        seed: int,
    ) -> dict[str, Any]:
        """``{"contenders": […], "library": …}`` as `workers.race.race` yields it, or a failure."""
        arguments = {
            "target_kind": self._kind,
            "device_index": self._index,
            "args": args,
            "outputs": outputs,
            "reference": reference,
            "contenders": contenders,
            "seed": seed,
        }
        with self._slot.used():
            return attempt(Stage.CERTIFY, lambda: self._child.call(f"{self._backend}:race", arguments, RACE_SECONDS))

    def check(self, target_json: str) -> dict[str, Any]:
        """What `workers.reference.check` yields, or a failure."""
        return self._reference("check", target_json)

    def peaks(self, target_json: str) -> dict[str, Any]:
        """What `workers.reference.peaks` yields, or a failure."""
        return self._reference("peaks", target_json)

    def _reference(self, function: str, target_json: str) -> dict[str, Any]:
        if target_json not in self._built:
            arguments = {"target_json": target_json, "threads": self._threads}
            built = attempt(Stage.BUILD, lambda: self._child.call(f"{_REFERENCE}:build", arguments, BUILD_SECONDS))
            if "failure" in built:
                return dict(built)
            self._built[target_json] = built
        timing = {"target_kind": self._kind, "device_index": self._index, "built": self._built[target_json]}
        return attempt(Stage.RUN, lambda: self._child.call(f"{_REFERENCE}:{function}", timing, MEASURE_SECONDS))


class _Slot:
    """What a measuring slot is doing, told from another thread."""

    def __init__(self) -> None:
        self.trial: str | None = None
        self._since: float | None = None
        self._seconds = 0.0

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        self._since = time.time()
        try:
            yield
        finally:
            self._seconds += time.time() - self._since
            self._since = self.trial = None

    def told(self) -> dict[str, Any]:
        """``since`` (None where it is idle), ``trial``, and ``used``: the seconds that it was in use in all."""
        since = self._since
        running = 0.0 if since is None else time.time() - since
        return {"since": since, "trial": self.trial, "used": self._seconds + running}

"""A fleet without devices, for tests of the loop and of the search: latencies are computed from programs' features."""

from __future__ import annotations

import functools
import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from tvm.s_tir import meta_schedule as ms

from loopwright.codegen.errors import last_line
from loopwright.codegen.kinds import FailureKind, SandboxLevel, Stage
from loopwright.codegen.program.schedule import apply_trace_json
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from tuner.cost_model.features import FEATURES, Features, extract
from tuner.errors import RaceFailed
from tuner.ports import Meanwhile, MeasureRequest, Raced, RaceRequest, RaceResult, one_by_one
from tuner.types import Failure, Measured, Outcome
from tuner.workload import tune_context

WORKER = "simulated"
ROUNDS = 5
"""Samples of each entry of a race."""
_WRONG = ("UnsafeSetDType", [0, "int8"])
"""The schedule instruction that changes what a program computes: so the simulation can tell without running it."""

_LANDSCAPE = np.random.default_rng(0).standard_normal(FEATURES) / np.sqrt(FEATURES)

Fault = Callable[[MeasureRequest], Failure | None]


def no_fault(_: MeasureRequest) -> Failure | None:
    return None


class SimulatedFleet:
    """See `tuner.ports.Fleet`. Outcomes depend on nothing but the program, and come back in order of submission.

    Args:
        target_json: what the programs are scheduled for.
        baseline: latency of every unscheduled function, in seconds; that of a schedule lies around 0.1 to 10 ms.
        fault: says which requests fail, and how; such a program is rejected in races, too.
        slots: requests in flight that keep the fleet busy.
        per_collect: outcomes that one `collect` returns at most.
    """

    def __init__(
        self,
        target_json: str = '{"kind": "llvm"}',
        baseline: float = 1e-2,
        fault: Fault = no_fault,
        slots: int = 4,
        per_collect: int = 2,
    ) -> None:
        self._target_json = target_json
        self._baseline = baseline
        self._fault = fault
        self._slots = slots
        self._per_collect = per_collect
        self._waiting: deque[MeasureRequest] = deque()
        self.submitted: list[MeasureRequest] = []
        self.races: list[RaceRequest] = []

    @property
    def slots(self) -> int:
        return self._slots

    def submit(self, request: MeasureRequest) -> None:
        self.submitted.append(request)
        self._waiting.append(request)

    def collect(self, timeout: float) -> list[tuple[str, Outcome]]:
        ready = [self._waiting.popleft() for _ in range(min(self._per_collect, len(self._waiting)))]
        return [(request.key, self._outcome(request)) for request in ready]

    def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        self.races.append(request)
        baseline = self._raced(request, "baseline", None)
        if isinstance(baseline, Failure):
            raise RaceFailed(baseline.message)
        if not request.yardsticks:
            baseline = replace(baseline, run_secs=())
        contenders = {key: self._raced(request, key, trace) for key, trace in request.contenders.items()}
        return RaceResult(baseline, contenders, sandbox=SandboxLevel.NONE, system="simulated", worker=WORKER)

    def race_all(self, requests: Sequence[RaceRequest], meanwhile: Meanwhile) -> list[RaceResult | RaceFailed]:
        return one_by_one(self.race, requests, meanwhile)

    def forward(self) -> None:
        """Nothing is built ahead of being measured."""

    def prepare(self, module_json: str) -> None:
        """Nothing is built ahead of being raced."""

    def abandon(self) -> None:
        self._waiting.clear()

    def latency(self, module_json: str, trace_json: str | None) -> float:
        """Seconds per call. Raises what TVM raises where the module does not load or the trace does not apply."""
        if trace_json is None:
            module_from_json(module_json)
            return self._baseline
        return _latency(self._target_json, module_json, trace_json)

    def _outcome(self, request: MeasureRequest) -> Outcome:
        if failure := self._fault(request):
            return failure
        try:
            latency = self.latency(request.module_json, request.trace_json)
        except Exception as error:
            return Failure(Stage.BUILD, FailureKind.COMPILE, last_line(error), None)
        dropped = request.cutoff is not None and latency > request.cutoff
        return Measured((latency,) if dropped else (latency, latency * 1.01, latency * 0.99), WORKER)

    def _raced(self, request: RaceRequest, key: str, trace_json: str | None) -> Raced | Failure:
        outcome = self._outcome(MeasureRequest(key, request.module_json, request.args, trace_json, None))
        if isinstance(outcome, Failure):
            return outcome
        steps = json.loads(trace_json)[0] if trace_json is not None else []
        if _WRONG in [(kind, attributes) for kind, _, attributes, _ in steps]:
            return Failure(Stage.CERTIFY, FailureKind.WRONG_RESULT, "argument 1 differs by up to 1 on normal inputs")
        drift = 1.0 + 0.1 * np.arange(ROUNDS)  # of the machine: the same for all programs
        return Raced(tuple(float(s) for s in outcome.median * drift), 0.0, 0.0)


@functools.cache
def _latency(target_json: str, module_json: str, trace_json: str) -> float:
    """Return the seconds per call of a schedule. Searches of equal seeds, and races, ask for the same ones again."""
    mod = module_from_json(module_json)
    context = tune_context(mod, target_from(target_json), ms.space_generator.PostOrderApply(), seed=1)
    return _of(extract(context, [apply_trace_json(mod, trace_json)])[0])


def _of(features: Features) -> float:
    """A fixed, smooth landscape over the features, so that a model can learn it."""
    return float(1e-3 * np.exp(np.tanh(features.mean(axis=0) @ _LANDSCAPE / 4) * 2.3))

"""The port `tuner.ports.Search` in this process: for a child behind walls, and for tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import tvm
from tvm.target import Target

from loopwright.codegen.functions import write_only
from loopwright.codegen.kinds import Origin
from loopwright.codegen.program.schedule import apply_trace_json
from loopwright.codegen.rules import prior
from loopwright.codegen.serialization import compact_json, module_from_json
from loopwright.codegen.target import target_from
from tuner.cost_model.model import CostModel
from tuner.errors import InvalidSpace
from tuner.ports import Meanwhile
from tuner.search.evolutionary_search import EvolutionarySearch
from tuner.search.request import TuneRequest
from tuner.space.builtin import builtin_space, stock_space
from tuner.space.design_space import REFUSALS
from tuner.space.user import user_space
from tuner.types import MeasureCandidate, Outcome, TaskSpec, Trial


class Searcher:
    """See `tuner.ports.Search`. Sets itself no limits, so it never raises SearchFailed and calls nothing meanwhile.

    The tasks share a cost model. Of ``request`` only what is searched counts; the limits are the loop's.
    """

    def __init__(self, request: TuneRequest) -> None:
        self._request = request
        self._target = target_from(request.target_json)
        self._model = CostModel(request.seed, request.base_model, request.config.ranking)
        self._specs: dict[int, TaskSpec] = {}
        self._searches: dict[int, EvolutionarySearch] = {}

    def read(self, task: int, spec: TaskSpec, meanwhile: Meanwhile) -> tuple[bool, ...]:
        self._specs[task] = spec
        return write_only(module_from_json(spec.workload.module_json)["main"])

    def choose(self, task: int, meanwhile: Meanwhile) -> MeasureCandidate | None:
        spec = self._specs[task]
        mod = module_from_json(spec.workload.module_json)
        for trace_json, origin in _promising(spec, mod, self._target):
            if trace_json not in spec.barred:
                return MeasureCandidate(trace_json, origin)
        return next(iter(self.propose(task, 1, meanwhile)), None) if self.open(task, (), meanwhile) else None

    def open(self, task: int, history: Sequence[Trial], meanwhile: Meanwhile) -> bool:
        try:
            search = self._opened(task)
        except InvalidSpace:
            return False
        for trial in history:
            search.resume(trial.candidate)
            if trial.outcome is not None:
                search.observe(trial.candidate, trial.outcome)
        self._searches[task] = search
        return True

    def propose(self, task: int, count: int, meanwhile: Meanwhile) -> list[MeasureCandidate]:
        return self._searches[task].propose(count)

    def observe(self, task: int, candidate: MeasureCandidate, outcome: Outcome) -> None:
        self._searches[task].observe(candidate, outcome)

    def _opened(self, task: int) -> EvolutionarySearch:
        request, spec = self._request, self._specs[task]
        rng = np.random.default_rng([request.seed, task])
        mod = module_from_json(spec.workload.module_json)
        seed = int(rng.integers(1, 2**31 - 1))
        if request.space is not None:
            space = user_space(mod, self._target, request.space, seed)
        elif request.config.rules:
            space = builtin_space(mod, self._target, seed, experimental=request.config.experimental)
        else:
            space = stock_space(mod, self._target, seed)
        return EvolutionarySearch(
            spec.workload.hash, space, self._model, rng, spec.relatives, spec.known, spec.barred, request.config
        )


def _promising(spec: TaskSpec, mod: tvm.IRModule, target: Target) -> Iterator[tuple[str, Origin]]:
    """Yield traces (JSON) of a task with their origins: the known ones that still apply, then the choices of rules."""
    for trace_json in spec.known:
        with contextlib.suppress(*REFUSALS):
            apply_trace_json(mod, trace_json)
            yield trace_json, Origin.TRANSFER
    for trace in prior.choices(mod, target):
        yield compact_json(trace), Origin.SEED

"""The tuning loop of one job. It does no I/O of its own: building, measuring and writing go through ports."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from tuner.budget import Progress, next_task
from tuner.certify import BASELINE, certify
from tuner.cost_model.model import CostModel
from tuner.errors import InvalidSpace, RaceFailed
from tuner.ports import Fleet, Ledger, MeasureRequest
from tuner.search.evolution import EvolutionarySearch
from tuner.space.builtin import builtin_space
from tuner.space.user import user_space
from tuner.types import Failure, Lane, MeasureCandidate, Measured, Outcome, Span, TaskSpec, Trial
from tuner.workload import write_only

BATCH = 8
"""Candidates proposed at a time: small, so that the model learns before it is asked again."""
CUTOFF = 1.5
"""A candidate this many times slower than the task's best so far is not measured in full."""
SEARCH = "search"
"""The loop itself, in the timeline of its trials."""
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """What to tune: tasks, the target's JSON, the user's traces (None: built-in space) and the limits.

    ``max_trials`` counts search trials of all tasks (baselines do not count); ``max_seconds`` is what is left;
    ``base_model`` is the device class's (`tuner.cost_model.model.train_base`), None where there is none yet.
    """

    tasks: Sequence[TaskSpec]
    target_json: str
    space: list[object] | None
    max_trials: int
    max_seconds: float | None
    seed: int
    base_model: bytes | None = None


@dataclass(slots=True)
class _TaskRun:
    spec: TaskSpec
    search: EvolutionarySearch | None
    progress: Progress
    trials: dict[str, Trial] = field(default_factory=dict)
    baseline: Outcome | None = None

    @property
    def best(self) -> float | None:
        return self.progress.curve[-1] if self.progress.curve and self.progress.curve[-1] != float("inf") else None


def tune(request: TuneRequest, fleet: Fleet, ledger: Ledger, clock: Callable[[], float] = time.monotonic) -> None:
    """Search, measure and certify until the budget is spent; results are in the ledger.

    Goes on from whatever the ledger already holds. Raises LeaseLost when another run has taken the job over.
    """
    _Loop(request, fleet, ledger, clock).run()


class _Loop:
    def __init__(self, request: TuneRequest, fleet: Fleet, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._request = request
        self._fleet = fleet
        self._ledger = ledger
        self._clock = clock
        self._until = None if request.max_seconds is None else clock() + request.max_seconds
        self._in_flight: dict[str, tuple[int, Trial]] = {}
        self._model = CostModel(request.seed, request.base_model)
        self._runs: list[_TaskRun] = []

    def run(self) -> None:
        with self._fleet.busy():
            self._runs = [self._start(number, spec) for number, spec in enumerate(self._request.tasks)]
        stopped = self._search()
        for number, run in enumerate(self._runs):
            self._measure_baseline(number, run)
        self._drain()
        for number, run in enumerate(self._runs):
            self._close(number, run, stopped)

    def _start(self, number: int, spec: TaskSpec) -> _TaskRun:
        """Open a task's space and take up its history; unfinished trials are measured again, as the same trials."""
        rng = np.random.default_rng([self._request.seed, number])
        run = _TaskRun(spec, None, Progress(spec.weight))
        try:
            mod = module_from_json(spec.workload.module_json)
            target = target_from(self._request.target_json)
            seed = int(rng.integers(1, 2**31 - 1))
            space = (
                builtin_space(mod, target, seed)
                if self._request.space is None
                else user_space(mod, target, self._request.space, seed)
            )
            run.search = EvolutionarySearch(spec.workload.hash, space, self._model, rng, spec.relatives, spec.known)
        except InvalidSpace:
            # A user's space fits some of a model's functions; the others keep their baseline.
            run.progress.exhausted = True
        for trial in self._ledger.history(number):
            run.trials[trial.candidate.hash] = trial
            if run.search is not None:
                run.search.resume(trial.candidate)
            if trial.candidate.trace_json is not None:
                run.progress.proposed += 1
            if trial.outcome is None:
                self._submit(number, run, trial)
            else:
                self._learn(run, trial, trial.outcome)
        if len(self._request.tasks) > 1:
            self._measure_baseline(number, run)
        return run

    def _search(self) -> str:
        """Propose and collect until a limit is met; says which."""
        while True:
            if self._ledger.cancelled():
                return "cancelled"
            if self._until is not None and self._clock() >= self._until:
                return "time"
            left = self._request.max_trials - sum(run.progress.proposed for run in self._runs)
            if left <= 0:
                return "budget"
            if len(self._in_flight) < self._fleet.slots and not self._awaits_baselines():
                number = next_task([run.progress for run in self._runs], left // BATCH)
                if number is not None:
                    self._fill(number, min(BATCH, left))
                    continue
                if not self._in_flight:
                    return "exhausted"
            self._collect()

    def _awaits_baselines(self) -> bool:
        """Whether it is not known yet which of several tasks matter: a short budget is not for the others."""
        waited_for = [trial.candidate for _, trial in self._in_flight.values()]
        return len(self._runs) > 1 and BASELINE in waited_for

    def _fill(self, number: int, count: int) -> None:
        run = self._runs[number]
        assert run.search is not None, "a task without a search is exhausted"
        with self._fleet.busy() as busy:
            started = time.time()
            candidates = run.search.propose(count, busy.pause)
            searched = Span(Lane.PROPOSE, SEARCH, started, time.time())
        if len(candidates) < count:
            run.progress.exhausted = True
        run.progress.proposed += len(candidates)
        self._propose(number, run, candidates, searched)
        self._measure_baseline(number, run)

    def _measure_baseline(self, number: int, run: _TaskRun) -> None:
        """Unless it was. Of several tasks it tells which matter; a lone one's may take seconds, and comes second."""
        if BASELINE.hash not in run.trials:
            self._propose(number, run, [BASELINE])

    def _propose(
        self, number: int, run: _TaskRun, candidates: Sequence[MeasureCandidate], searched: Span | None = None
    ) -> None:
        for trial in self._ledger.propose(number, candidates, searched):
            run.trials[trial.candidate.hash] = trial
            self._submit(number, run, trial)

    def _submit(self, number: int, run: _TaskRun, trial: Trial) -> None:
        self._in_flight[trial.id] = (number, trial)
        baseline = trial.candidate.trace_json is None
        self._fleet.submit(
            MeasureRequest(
                key=trial.id,
                module_json=run.spec.workload.module_json,
                args=run.spec.workload.args,
                trace_json=trial.candidate.trace_json,
                cutoff=None if baseline or run.best is None else run.best * CUTOFF,
            )
        )

    def _collect(self) -> None:
        for key, outcome in self._fleet.collect(_POLL_SECONDS):
            number, trial = self._in_flight.pop(key)
            self._ledger.finish(trial, outcome)
            self._learn(self._runs[number], trial, outcome)

    def _drain(self) -> None:
        while self._in_flight:
            self._collect()

    def _learn(self, run: _TaskRun, trial: Trial, outcome: Outcome) -> None:
        run.trials[trial.candidate.hash] = Trial(trial.id, trial.candidate, outcome)
        if trial.candidate.trace_json is None:
            run.baseline = outcome
            if isinstance(outcome, Measured):
                run.progress.baseline = outcome.median
            else:
                run.progress.exhausted = True  # nothing could be proven against it
            return
        run.progress.record(outcome.median if isinstance(outcome, Measured) else None)
        if run.search is not None:
            run.search.observe(trial.candidate, outcome)

    def _close(self, number: int, run: _TaskRun, stopped: str) -> None:
        if isinstance(run.baseline, Failure):
            self._ledger.fail(number, f"the unscheduled function failed ({run.baseline.kind}): {run.baseline.message}")
            return
        mod = module_from_json(run.spec.workload.module_json)
        try:
            certificate = certify(
                self._fleet,
                run.spec.workload,
                write_only(mod["main"]),
                list(run.trials.values()),
                self._request.seed,
            )
        except RaceFailed as error:
            self._ledger.fail(number, f"nothing could be proven: {error}")
            return
        self._ledger.certify(number, certificate, "exhausted" if run.progress.exhausted else stopped)

"""The tuning loop of one job. It does no I/O of its own: building, measuring and writing go through ports."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from tuner.budget import Progress, next_task
from tuner.certify import certify
from tuner.cost_model.model import CostModel
from tuner.errors import InvalidSpace, RaceFailed
from tuner.ports import Fleet, Ledger, MeasureRequest
from tuner.search.config import SearchConfig
from tuner.search.evolutionary_search import EvolutionarySearch
from tuner.space.builtin import builtin_space, stock_space
from tuner.space.user import user_space
from tuner.types import (
    BASELINE,
    Failure,
    Lane,
    MeasureCandidate,
    Measured,
    Outcome,
    Span,
    StopReason,
    TaskSpec,
    Trial,
)
from tuner.workload import write_only

SEARCH = "search"
"""Name of the loop itself in the timeline of its trials."""
_POLL_SECONDS = 0.5
"""Longest wait for an outcome before the loop asks again whether the job was cancelled."""


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
    config: SearchConfig = SearchConfig()


@dataclass(slots=True)
class _TaskRun:
    number: int
    spec: TaskSpec
    search: EvolutionarySearch | None
    progress: Progress
    trials: dict[str, Trial] = field(default_factory=dict)
    baseline: Outcome | None = None


def tune(request: TuneRequest, fleet: Fleet, ledger: Ledger, clock: Callable[[], float] = time.monotonic) -> None:
    """Search, measure and certify until the budget is spent, and write the results into the ledger.

    Continues from what the ledger contains. Raises LeaseLost if another run has taken the job over.
    """
    _Loop(request, fleet, ledger, clock).run()


class _Loop:
    def __init__(self, request: TuneRequest, fleet: Fleet, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._request = request
        self._fleet = fleet
        self._ledger = ledger
        self._clock = clock
        self._until = None if request.max_seconds is None else clock() + request.max_seconds
        self._in_flight: dict[str, tuple[_TaskRun, Trial]] = {}
        self._config = request.config
        self._model = CostModel(request.seed, request.base_model, request.config.ranking)
        self._runs: list[_TaskRun] = []

    def run(self) -> None:
        with self._fleet.busy():
            self._runs = [self._start(number, spec) for number, spec in enumerate(self._request.tasks)]
        reason = self._search()
        for run in self._runs:
            self._measure_baseline(run)
        while self._in_flight:
            self._collect()
        for run in self._runs:
            self._close(run, StopReason.EXHAUSTED if run.progress.exhausted else reason)

    def _start(self, number: int, spec: TaskSpec) -> _TaskRun:
        """Open a task's space and take up its history; unfinished trials are measured again, as the same trials."""
        rng = np.random.default_rng([self._request.seed, number])
        run = _TaskRun(number, spec, None, Progress(spec.weight))
        try:
            mod = module_from_json(spec.workload.module_json)
            target = target_from(self._request.target_json)
            seed = int(rng.integers(1, 2**31 - 1))
            if self._request.space is not None:
                space = user_space(mod, target, self._request.space, seed)
            elif self._config.rules:
                space = builtin_space(mod, target, seed)
            else:
                space = stock_space(mod, target, seed)
            run.search = EvolutionarySearch(
                spec.workload.hash, space, self._model, rng, spec.relatives, spec.known, self._config
            )
        except InvalidSpace:
            # A user's space fits some functions of a model; the others keep their baseline.
            run.progress.exhausted = True
        for trial in self._ledger.history(number):
            run.trials[trial.candidate.hash] = trial
            if run.search is not None:
                run.search.resume(trial.candidate)
            if trial.candidate.trace_json is not None:
                run.progress.proposed += 1
            if trial.outcome is None:
                self._submit(run, trial)
            else:
                self._learn(run, trial, trial.outcome)
        if len(self._request.tasks) > 1:
            self._measure_baseline(run)
        return run

    def _search(self) -> StopReason:
        """Propose and collect until a limit is reached, and return which one."""
        batch = self._config.batch
        while True:
            if self._ledger.cancelled():
                return StopReason.CANCELLED
            if self._until is not None and self._clock() >= self._until:
                return StopReason.TIME
            left = self._request.max_trials - sum(run.progress.proposed for run in self._runs)
            if left <= 0:
                return StopReason.BUDGET
            if len(self._in_flight) < self._fleet.slots and not self._awaits_baselines():
                number = next_task([run.progress for run in self._runs], left // batch, self._config)
                if number is not None:
                    self._fill(self._runs[number], min(batch, left))
                    continue
                if not self._in_flight:
                    return StopReason.EXHAUSTED
            self._collect()

    def _awaits_baselines(self) -> bool:
        """Return whether it is not yet known which of several tasks matter."""
        pending = [trial.candidate for _, trial in self._in_flight.values()]
        return len(self._runs) > 1 and BASELINE in pending

    def _fill(self, run: _TaskRun, count: int) -> None:
        """Propose a batch of a task and submit it."""
        assert run.search is not None, "a task without a search is exhausted"
        with self._fleet.busy() as busy:
            started = time.time()
            candidates = run.search.propose(count, busy.pause)
            searched = Span(Lane.PROPOSE, SEARCH, started, time.time())
        if len(candidates) < count:
            run.progress.exhausted = True
        run.progress.proposed += len(candidates)
        self._propose(run, candidates, searched)
        self._measure_baseline(run)

    def _measure_baseline(self, run: _TaskRun) -> None:
        """Submit the baseline, unless it was submitted before.

        With several tasks it runs first, because the budget is shared by it. With a single task it runs after the first
        batch: it may take seconds.
        """
        if BASELINE.hash not in run.trials:
            self._propose(run, [BASELINE])

    def _propose(self, run: _TaskRun, candidates: Sequence[MeasureCandidate], searched: Span | None = None) -> None:
        for trial in self._ledger.propose(run.number, candidates, searched):
            run.trials[trial.candidate.hash] = trial
            self._submit(run, trial)

    def _submit(self, run: _TaskRun, trial: Trial) -> None:
        self._in_flight[trial.id] = (run, trial)
        self._fleet.submit(
            MeasureRequest(
                key=trial.id,
                module_json=run.spec.workload.module_json,
                args=run.spec.workload.args,
                trace_json=trial.candidate.trace_json,
                cutoff=self._cutoff(run, trial.candidate),
            )
        )

    def _cutoff(self, run: _TaskRun, candidate: MeasureCandidate) -> float | None:
        """Return the latency above which a candidate need not be sampled in full."""
        if candidate.trace_json is None or run.progress.best is None or self._config.cutoff is None:
            return None
        return run.progress.best * self._config.cutoff

    def _collect(self) -> None:
        for key, outcome in self._fleet.collect(_POLL_SECONDS):
            run, trial = self._in_flight.pop(key)
            self._ledger.finish(trial, outcome)
            self._learn(run, trial, outcome)

    def _learn(self, run: _TaskRun, trial: Trial, outcome: Outcome) -> None:
        run.trials[trial.candidate.hash] = Trial(trial.id, trial.candidate, outcome)
        if trial.candidate.trace_json is None:
            run.baseline = outcome
            if isinstance(outcome, Measured):
                run.progress.baseline = outcome.median
            else:
                run.progress.exhausted = True  # without a baseline no result can be certified
            return
        run.progress.record(outcome.median if isinstance(outcome, Measured) else None)
        if run.search is not None:
            run.search.observe(trial.candidate, outcome)

    def _close(self, run: _TaskRun, reason: StopReason) -> None:
        """Certify the best candidate of a task, or write why there is none."""
        if isinstance(run.baseline, Failure):
            message = f"the unscheduled function failed ({run.baseline.kind}): {run.baseline.message}"
            self._ledger.fail(run.number, message)
            return
        mod = module_from_json(run.spec.workload.module_json)
        try:
            certificate = certify(
                self._fleet,
                run.spec.workload,
                write_only(mod["main"]),
                list(run.trials.values()),
                contenders=self._config.contenders,
                seed=self._request.seed,
            )
        except RaceFailed as error:
            self._ledger.fail(run.number, f"nothing could be proven: {error}")
            return
        self._ledger.certify(run.number, certificate, reason)

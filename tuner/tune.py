"""The tuning loop of one job. It does no I/O: it searches, builds, measures and writes through ports.

It treats a user's module as text only: the code that parses and schedules it is behind the port `Search`.
"""

from __future__ import annotations

import math
import time
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from loopwright.codegen.kinds import FailureKind, Lane, Stage
from tuner.allocation import Progress, negligible, next_task, trivial, tuned_seconds, untuned_seconds
from tuner.certify import Certification, certify_all
from tuner.closing import Closing, RacePlan, beside, closing_seconds, model_seconds, plan_race, together
from tuner.errors import RaceFailed, SearchFailed
from tuner.floor import impossible, least_seconds
from tuner.ports import Fleet, Ledger, Meanwhile, MeasureRequest, Search
from tuner.search.plateau import Finished, gain_of_next_minute
from tuner.search.request import TuneRequest
from tuner.types import (
    BASELINE,
    Failure,
    MeasureCandidate,
    Measured,
    Outcome,
    Span,
    StopReason,
    TaskSpec,
    Trial,
    device_seconds,
)

SEARCH = "search"
"""Name of the loop itself in the timeline of its trials."""
_POLL_SECONDS = 0.5
"""Between two looks whether the job was cancelled."""
_BUILT_AHEAD = 8
"""References of the races that follow: builders work on them while programs are checked. As many as are raced together:
what a race itself needs waits behind them. Not tuned."""
_KILLS = 2
"""After so many kills of its process a trial has failed. One may have been meant for another process of the batch, or
come from an operator; the second attempt has a process of its own."""


@dataclass(slots=True)
class _TaskRun:
    """``outputs``: for each argument whether the function only writes it; None if the function cannot be read."""

    number: int
    spec: TaskSpec
    progress: Progress
    outputs: tuple[bool, ...] | None = None
    opened: bool = False
    ended: StopReason | None = None
    """Why the search of this task ended before the others'."""
    complaint: str = ""
    """What the user is told if the search failed."""
    trials: dict[str, Trial] = field(default_factory=dict)
    baseline: Outcome | None = None

    def end(self, reason: StopReason, complaint: str = "") -> None:
        self.ended, self.complaint = reason, complaint
        self.opened = self.opened and reason is not StopReason.FAILED
        self.progress.exhausted = True


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of a run of the loop: of the search, and of the closing races."""

    search: float = 0.0
    races: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.search + other.search, self.races + other.races)


def tune(
    request: TuneRequest, search: Search, fleet: Fleet, ledger: Ledger, clock: Callable[[], float] = time.monotonic
) -> Spent:
    """Search, measure and certify until the budget is spent, and write the results into the ledger.

    Returns where the time went.

    Continues from what the ledger contains. When the user cancels the job, returns at once and certifies nothing more.
    Raises LeaseLost if another run has taken the job over.
    """
    try:
        return _Loop(request, search, fleet, ledger, clock).run()
    except _Cancelled:
        fleet.abandon()
        return Spent()
    except BaseException:
        fleet.abandon()
        raise


class _Cancelled(Exception):
    """The user wants no more."""


class _TimeIsUp(Exception):
    """The search, or the job, has used its time."""


class _Loop:
    def __init__(
        self, request: TuneRequest, search: Search, fleet: Fleet, ledger: Ledger, clock: Callable[[], float]
    ) -> None:
        self._request = request
        self._search = search
        self._fleet = fleet
        self._ledger = ledger
        self._clock = clock
        self._budget = request.budget
        self._until = math.inf if self._budget.max_seconds is None else clock() + self._budget.max_seconds
        self._search_until = self._until
        self._last = self._until + request.config.overtime_share * max(0.0, self._budget.max_seconds or 0.0)
        """When a closing race is stopped, unless it is the job's first."""
        self._builds: list[float] = []
        """Seconds of each build of the job, in order of size."""
        self._race_seconds: float | None = None
        """Of a closing race of a small task, the mean of the last set of processes; None before there was one."""
        self._next_look = 0.0
        self._in_flight: dict[str, tuple[_TaskRun, Trial]] = {}
        self._config = request.config
        self._runs: list[_TaskRun] = []
        self._finished: list[Finished] = []
        self._device_seconds = 0.0
        self._elsewhere: float | None = None

    def run(self) -> Spent:
        began = self._clock()
        self._runs = [self._take_up(number, spec) for number, spec in enumerate(self._request.tasks)]
        self._leave_negligible()
        self._keep_for_closing()
        try:
            reason = self._tune()
            while self._in_flight:
                self._search_on()
                self._collect()
        except _TimeIsUp:
            reason = StopReason.TIME
            self._drop_in_flight()
        self._ledger.end(reason)
        searched = self._clock()
        self._close_all(reason)
        return Spent(searched - began, self._clock() - searched)

    def _leave_negligible(self) -> None:
        """Leave functions that hardly matter without a search: a race compares the rules' first choice.

        A user's space has no first choice.
        """
        if self._request.space is None:
            tasks = [(run.spec.workload, run.spec.weight) for run in self._runs]
            for number in negligible(tasks, self._request.peak_flops, self._config):
                self._runs[number].progress.negligible = True

    def _keep_for_closing(self) -> None:
        """Set when the search must end, by the time that the closing of the job is going to take."""
        whole = self._budget.max_seconds
        if whole is not None:
            closings = self._closings([run for run in self._runs if run.outputs is not None])
            self._search_until = self._until - closing_seconds(whole, closings, self._builds, self._config)

    def _closings(self, runs: Sequence[_TaskRun]) -> list[Closing]:
        shares = self._shares()
        return [
            Closing(shares[run.number], run.progress.untuned, sum(info.bytes for info in run.spec.workload.args))
            for run in runs
        ]

    def _drop_in_flight(self) -> None:
        """Stop what is in flight. Races measure the baselines."""
        self._fleet.abandon()
        self._in_flight.clear()

    def _take_up(self, number: int, spec: TaskSpec) -> _TaskRun:
        """Read a task and its history; unfinished trials are measured again, as the same trials."""
        run = _TaskRun(number, spec, Progress(spec.weight, untuned_seconds(spec.workload)))
        try:
            run.outputs = self._search.read(number, spec, self._go_on)
        except SearchFailed as error:
            run.end(StopReason.FAILED, str(error))
            return run
        for trial in self._ledger.history(number):
            run.trials[trial.candidate.hash] = trial
            if trial.candidate.trace_json is not None:
                run.progress.proposed += 1
            if trial.outcome is None:
                self._device_seconds += device_seconds(trial.killed)
                self._submit(run, trial)
            else:
                self._learn(run, trial, trial.outcome)
        return run

    def _tune(self) -> StopReason:
        """Propose and collect until a limit is reached, and return which one. Raises _TimeIsUp, too."""
        while True:
            self._search_on()
            reached = self._reached()
            if reached is not None:
                return reached
            if len(self._in_flight) < self._fleet.slots:
                number = next_task([run.progress for run in self._runs], self._config)
                if number is not None:
                    self._fill(self._runs[number])
                    continue
                if not self._in_flight:
                    return StopReason.EXHAUSTED
            self._collect()

    def _trials_left(self) -> int:
        return self._budget.max_trials - sum(run.progress.proposed for run in self._runs)

    def _reached(self) -> StopReason | None:
        """Return the limit that the search has reached, or the aim; None if it goes on."""
        budget = self._budget
        if budget.target_latency_us is not None and self._model_latency() * 1e6 <= budget.target_latency_us:
            return StopReason.TARGET
        if self._trials_left() <= 0:
            return StopReason.BUDGET
        if budget.max_device_seconds is not None and self._device_seconds >= budget.max_device_seconds:
            return StopReason.DEVICE_TIME
        if budget.until is not None and self._at_plateau():
            return StopReason.PLATEAU
        return None

    def _model_latency(self) -> float:
        """Return the seconds of one run of the model by the best so far; infinite if a task has no latency."""
        if self._elsewhere is None:
            return math.inf
        total = self._elsewhere
        for run in self._runs:
            latency = run.progress.latency
            total += math.inf if latency is None else run.spec.weight * latency
        return total

    def _shares(self) -> dict[int, float]:
        """Return each task's share of the model's time, by its number: of a task without a latency, an estimate."""
        peak = self._request.peak_flops
        seconds = {
            run.number: run.spec.weight * (run.progress.latency or tuned_seconds(run.spec.workload, peak))
            for run in self._runs
        }
        total = sum(seconds.values()) + (self._elsewhere or 0.0)
        return {number: each / total if total else 1.0 for number, each in seconds.items()}

    def _at_plateau(self) -> bool:
        """Return whether each task that matters had its first batch and the next minute is expected to gain little."""
        config = self._config
        little = trivial([run.progress for run in self._runs], config)
        for run in self._runs:
            if run.progress.negligible:
                continue
            if run.ended is None and len(run.progress.curve) < (1 if run.number in little else config.batch):
                return False
        gain = gain_of_next_minute(
            self._finished,
            {run.number: run.spec.weight for run in self._runs if run.progress.latency is not None},
            window=max(config.plateau_window, config.plateau_window_per_task * len(self._runs)),
            elsewhere=self._elsewhere or 0.0,
        )
        return gain < config.plateau_gain

    def _open(self, run: _TaskRun) -> bool:
        """Open the space of a task. A user's space fits some functions of a model; the others keep their baseline."""
        run.opened = self._search.open(run.number, list(run.trials.values()), self._search_on)
        if not run.opened:
            run.end(StopReason.EXHAUSTED)
        return run.opened

    def _go_on(self) -> None:
        """Keep the fleet at work, and look what happened elsewhere. Raises _Cancelled."""
        self._fleet.forward()
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _POLL_SECONDS
            if self._ledger.cancelled():
                raise _Cancelled
            if self._budget.target_latency_us is not None or self._budget.until is not None:
                self._elsewhere = self._ledger.elsewhere()

    def _search_on(self) -> None:
        """Go on, within the time of the search. Raises _TimeIsUp, too."""
        self._go_on()
        if self._clock() >= self._search_until:
            raise _TimeIsUp

    def _fill(self, run: _TaskRun) -> None:
        """Propose a batch of a task and submit it; of each of several tasks, a single candidate first.

        The baseline follows the batch: it may take seconds, and nothing is shared by it.
        """
        first = len(self._runs) > 1 and run.progress.proposed == 0
        count = min(1 if first else self._config.batch, self._trials_left())
        if self._propose_new(run, count) and not first:
            self._measure_baseline(run)

    def _propose_new(self, run: _TaskRun, count: int) -> bool:
        """Search for candidates of a task, and submit them. Returns False if the search could not propose any."""
        started = time.time()
        try:
            if not run.opened and not self._open(run):
                return False
            candidates = self._search.propose(run.number, count, self._search_on)
        except SearchFailed as error:
            run.end(StopReason.FAILED, str(error))
            return False
        searched = Span(Lane.PROPOSE, SEARCH, started, time.time())
        if len(candidates) < count:
            run.end(StopReason.EXHAUSTED)
        run.progress.proposed += len(candidates)
        self._propose(run, candidates, searched)
        return True

    def _measure_baseline(self, run: _TaskRun) -> None:
        """Submit the baseline, unless it was submitted before."""
        if run.outputs is not None and BASELINE.hash not in run.trials:
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
                alone=bool(trial.killed),
            )
        )

    def _cutoff(self, run: _TaskRun, candidate: MeasureCandidate) -> float | None:
        """Return the latency above which a candidate need not be sampled in full.

        The closing race measures a baseline again: of several tasks, a slow one is called once.
        """
        if candidate.trace_json is None:
            return 0.0 if len(self._runs) > 1 else None
        if run.progress.best is None or self._config.cutoff is None:
            return None
        return run.progress.best * self._config.cutoff

    def _collect(self) -> None:
        self._go_on()
        finished: list[tuple[_TaskRun, Trial, Outcome]] = []
        for key, outcome in self._fleet.collect(_POLL_SECONDS):
            run, trial = self._in_flight.pop(key)
            if _killed(outcome) and len(trial.killed) + 1 < _KILLS:
                self._submit_again(run, trial, outcome.spans[-1])
            else:
                finished.append((run, trial, self._possible(run, outcome)))
        if finished:
            self._ledger.finish(*((trial, outcome) for _, trial, outcome in finished))
        for run, trial, outcome in finished:
            self._learn(run, trial, outcome)
            self._keep_for_closing()

    def _possible(self, run: _TaskRun, outcome: Outcome) -> Outcome:
        """Return the outcome, or the failure of a program that is faster than the machine."""
        if isinstance(outcome, Failure) or run.outputs is None:
            return outcome
        least = least_seconds(run.spec.workload, run.outputs, self._request.peak_flops)
        failure = impossible(outcome.run_secs, least, Stage.RUN)
        return outcome if failure is None else replace(failure, worker=outcome.worker, spans=outcome.spans)

    def _submit_again(self, run: _TaskRun, trial: Trial, attempt: Span) -> None:
        """Submit a trial whose process was killed, after the ledger has the attempt: it counts in a later run, too."""
        self._device_seconds += device_seconds([attempt])
        self._submit(run, self._ledger.note_kill(trial, attempt))

    def _learn(self, run: _TaskRun, trial: Trial, outcome: Outcome) -> None:
        run.trials[trial.candidate.hash] = Trial(trial.id, trial.candidate, outcome)
        latency = outcome.median if isinstance(outcome, Measured) else None
        ended = max((span.end for span in outcome.spans), default=time.time())
        insort(self._finished, Finished(ended, run.number, latency), key=lambda trial: trial.ended)
        self._device_seconds += device_seconds(outcome.spans)
        for span in outcome.spans:
            if span.lane is Lane.BUILD:
                insort(self._builds, span.end - span.start)
        if trial.candidate.trace_json is None:
            run.baseline = outcome
            run.progress.baseline = latency
            if latency is None:
                run.end(StopReason.EXHAUSTED)  # without a baseline no result can be certified
            return
        run.progress.record(latency)
        if run.opened:
            self._search.observe(run.number, trial.candidate, outcome)

    def _close_all(self, reason: StopReason) -> None:
        """Certify the tasks within the time that is left, those that matter most before the others.

        The one that matters most is certified in any case; others are postponed if the time is over.
        """
        shares = self._shares()
        waiting = sorted(filter(self._may_close, self._runs), key=lambda run: shares[run.number], reverse=True)
        first = len(waiting)
        try:
            while waiting:
                self._close_next(waiting, reason, self._go_on if len(waiting) == first else self._close_on)
        except _TimeIsUp:
            self._fleet.abandon()
            for run in waiting:
                self._ledger.postpone(run.number)

    def _close_next(self, waiting: list[_TaskRun], reason: StopReason, meanwhile: Meanwhile) -> None:
        """Certify the first of the waiting tasks, and those that share its processes, and take them off the list.

        Raises _TimeIsUp if they will not be certified in time.
        """
        closings = self._closings(waiting)
        count = together(closings, self._config)
        if meanwhile == self._close_on:
            count = min(count, self._affordable(closings))
        if count == 0:
            raise _TimeIsUp
        began = self._clock()
        left = self._until - began - model_seconds(len(self._runs), self._builds)
        left -= beside(closings, self._builds, self._config)
        plans = []
        for place in range(count):
            others = math.fsum(each.share for each in closings[place + 1 :])
            plans.append(plan_race(closings[place].share, others, left, self._config))
            left -= plans[-1].seconds
        ahead = [run.spec.workload.module_json for run in waiting[count : count + _BUILT_AHEAD]]

        def prepare_ahead() -> None:
            """Have references built for the next races, once builders have what this one needs."""
            meanwhile()
            while ahead:
                self._fleet.prepare(ahead.pop(0))

        self._close(waiting, plans, reason, prepare_ahead)
        if not closings[0].matters(self._config):
            self._race_seconds = (self._clock() - began) / count

    def _close_on(self) -> None:
        """Go on, within the time of the job. Raises _TimeIsUp, too."""
        self._go_on()
        if self._clock() >= self._last:
            raise _TimeIsUp

    def _affordable(self, closings: Sequence[Closing]) -> int:
        """Return how many of the next races end within the job's time and a little more, as far as can be told."""
        if math.isinf(self._last):
            return len(closings)
        seconds = None if closings[0].matters(self._config) else self._race_seconds
        if seconds is None:
            seconds = beside(closings[:1], self._builds, self._config)
        return min(len(closings), max(0, math.floor((self._last - self._clock()) / max(seconds, 1e-9))))

    def _may_close(self, run: _TaskRun) -> bool:
        """Return whether a task can be raced; write why not."""
        if isinstance(run.baseline, Failure):
            message = f"the unscheduled function failed ({run.baseline.kind}): {run.baseline.message}"
            self._ledger.fail(run.number, message)
        elif run.outputs is None or (run.complaint and not run.progress.curve):
            self._ledger.fail(run.number, run.complaint)
        else:
            return True
        return False

    def _close(
        self, waiting: list[_TaskRun], plans: Sequence[RacePlan], reason: StopReason, meanwhile: Meanwhile
    ) -> None:
        """Certify the best candidates of the first tasks, one a plan, or write why there are none."""
        certifications = []
        for run, plan in zip(waiting, plans, strict=False):
            assert run.outputs is not None
            certifications.append(
                Certification(
                    run.spec.workload,
                    run.outputs,
                    list(run.trials.values()),
                    plan=plan,
                    peak_flops=self._request.peak_flops,
                    first_choice=self._first_choice(run),
                )
            )
        for certification, found in zip(
            certifications, certify_all(self._fleet, certifications, meanwhile), strict=True
        ):
            run = waiting[0]
            if isinstance(found, RaceFailed):
                self._ledger.fail(run.number, f"nothing could be proven: {found}")
            else:
                self._finish_raced(run, certification.outcomes, found.candidate_hash)
                self._ledger.certify(run.number, found, run.ended or reason)
            del waiting[0]

    def _first_choice(self, run: _TaskRun) -> Trial | None:
        """Return the trial of a task without a measured candidate that its race is to measure, or None.

        Like the baseline, it is not of the budget: a model with more functions than trials is not to have unscheduled
        ones. A user's space has no first choice.
        """
        if run.progress.best is not None or self._request.space is not None:
            return None
        try:
            choice = self._search.choose(run.number, self._go_on)
        except SearchFailed:
            return None
        if choice is None:
            return None
        if choice.hash not in run.trials:
            [run.trials[choice.hash]] = self._ledger.propose(run.number, [choice])
        trial = run.trials[choice.hash]
        return trial if trial.outcome is None else None

    def _finish_raced(self, run: _TaskRun, outcomes: Mapping[str, Outcome], winner: str) -> None:
        """Write the outcomes of trials that only the race has measured: a certificate names a measured trial."""
        if winner not in run.trials:
            [run.trials[winner]] = self._ledger.propose(run.number, [BASELINE])
        raced = [trial for trial in run.trials.values() if trial.outcome is None and trial.candidate.hash in outcomes]
        self._ledger.finish(*((trial, outcomes[trial.candidate.hash]) for trial in raced))


def _killed(outcome: Outcome) -> bool:
    return isinstance(outcome, Failure) and outcome.kind is FailureKind.KILLED

"""The tuner's `Ledger` on the database: task numbers become task ids, and every write has the job's lease token."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from db import Database
from db.jobs.left import NO_TIME
from db.views import ClaimedJob, TaskView
from loopwright.codegen.kinds import AnsweredFrom
from tuner.errors import LeaseLost
from tuner.types import Certificate, Failure, MeasureCandidate, Outcome, Span, StopReason, Trial

WAITED = (
    "closing races were noisy, and waited for other processes of the machine to end; the certificates' intervals and "
    "grades say how sure the speedups are"
)
"""A note of a job."""

log = logging.getLogger("loopwright.ledger")

_WHOLE_BUDGET = (StopReason.BUDGET, StopReason.EXHAUSTED)
"""After these a search with the same budget would find nothing new."""

_WHY = {
    StopReason.TIME: "its time was over",
    StopReason.DEVICE_TIME: "its time in measuring slots was used",
    StopReason.TARGET: "the model reached the target latency",
    StopReason.PLATEAU: "the next minute was expected to gain less than 1 %",
    StopReason.EXHAUSTED: "there were no further programs to try",
}
"""Why a search stopped before all trials were made, as users are told."""


class DatabaseLedger:
    """See `tuner.ports.Ledger`. ``tasks`` are those that this run tunes, in the order of its TuneRequest.

    ``others`` are the other tasks of the job.
    """

    def __init__(
        self,
        database: Database,
        claimed: ClaimedJob,
        tasks: Sequence[TaskView],
        budget: int,
        others: Sequence[TaskView] = (),
    ) -> None:
        self._db = database
        self._job = claimed.job
        self._token = claimed.lease_token
        self._tasks = tasks
        self._budget = budget
        self._others = others
        self._closed: int | None = None
        """Closing races that have ended; None while the search goes on."""

    def history(self, task: int) -> Sequence[Trial]:
        self._db.trials.adopt(self._tasks[task].id, self._token)
        return self._db.trials.history(self._tasks[task].id)

    def propose(self, task: int, candidates: Sequence[MeasureCandidate], searched: Span | None = None) -> list[Trial]:
        return self._db.trials.propose(self._tasks[task].id, self._token, candidates, self._job.seed, searched)

    def finish(self, *finished: tuple[Trial, Outcome]) -> None:
        outcomes = {trial.id: outcome for trial, outcome in finished}
        written = self._db.trials.finish_all(outcomes, self._token)
        for trial_id in outcomes:
            if trial_id not in written:
                raise LeaseLost(f"trial {trial_id} is no longer this run's")
        for trial_id, outcome in outcomes.items():
            if isinstance(outcome, Failure):
                # Without the message, which can have many lines of what the program said. The ledger has it.
                facts = {"trial": trial_id, "worker": outcome.worker}
                log.info("trial %s failed: %s in %s", trial_id, outcome.kind, outcome.stage, extra=facts)

    def note_kill(self, trial: Trial, attempt: Span) -> Trial:
        noted = self._db.trials.note_kill(trial.id, self._token, attempt)
        if noted is None:
            raise LeaseLost(f"trial {trial.id} is no longer this run's")
        facts = {"trial": trial.id, "worker": attempt.worker}
        log.warning("the process of trial %s was killed; it is tried again alone", trial.id, extra=facts)
        return noted

    def elsewhere(self) -> float | None:
        seconds = 0.0
        for task in self._others:
            latency = self._latency(task)
            if latency is None:
                return None
            seconds += task.weight * latency
        return seconds

    def _latency(self, task: TaskView) -> float | None:
        """Return the certified latency; of a task that another job tunes, what was certified before or meanwhile."""
        if task.certified:
            return task.best_secs
        known = self._db.certificates.best(task.workload_hash, self._job.device_class_id)
        return None if known is None else known.certificate.best_median

    def end(self, reason: StopReason) -> None:
        if reason in _WHY:
            self._note(f"the search stopped: {_WHY[reason]}")
        self._closed = 0
        self._close_next()

    def certify(self, task: int, certificate: Certificate, stopped: StopReason) -> None:
        """Store the result; a search that ended before its budget was used counts for the trials that it made."""
        view = self._tasks[task]
        made = next(task.trials for task in self._db.tasks.of_job(view.job_id) if task.id == view.id)
        budget = self._budget if stopped in _WHOLE_BUDGET else min(made, self._budget)
        at_plateau = stopped is StopReason.PLATEAU
        stored = self._db.certificates.store(view.id, self._token, certificate, budget, at_plateau=at_plateau)
        self._db.tasks.answer(view.id, self._token, stored.id, AnsweredFrom.SEARCH)
        self._db.jobs.note_answers(view.key)
        if (waited := certificate.waited) is not None:
            facts = {"seconds": waited.seconds, "cores": waited.cores}
            log.info("the race of %s waited for other processes of its host", view.name, extra=facts)
            self._note(WAITED)
        self._count_closed()

    def _count_closed(self) -> None:
        if self._closed is not None:
            self._closed += 1
            self._close_next()

    def _close_next(self) -> None:
        if self._closed is not None and self._closed < len(self._tasks):
            activity = f"closing race, {self._closed + 1} of {len(self._tasks)}"
            self._db.jobs.set_activity(self._job.id, self._token, activity, phase="closing races")

    def _note(self, note: str) -> None:
        if not self._db.jobs.add_note(self._job.id, self._token, note):
            raise LeaseLost(f"job {self._job.id} is no longer this run's")

    def fail(self, task: int, message: str) -> None:
        self._db.tasks.fail(self._tasks[task].id, self._token, message)
        self._count_closed()

    def postpone(self, task: int) -> None:
        self.fail(task, NO_TIME)

    def cancelled(self) -> bool:
        return self._db.jobs.cancel_requested(self._job.id, self._token)

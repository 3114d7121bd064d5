"""The loop of one job, from its claim to its end. It may be interrupted at any moment; the next run continues it."""

from __future__ import annotations

import enum
import json
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace

from db import Database
from db.errors import Unavailable
from db.jobs.left import NO_TIME
from db.leases import RENEW_SECONDS
from db.views import ClaimedJob, JobView, RecordDetail, TaskView
from loopwright.codegen.kinds import AnsweredFrom, JobState, TaskState
from loopwright.codegen.versions import TVM_VERSION
from service.ablations import MOST
from service.ablations import race as ablation_race
from service.controller import model_time
from service.controller.claimed_tasks import ClaimedTasks
from service.controller.ledger import DatabaseLedger
from service.controller.observed_run import observed
from service.gates import race as gate_race
from service.outage import Outage
from service.rechecks import race as recheck_race
from tuner.errors import FleetDrained, LeaseLost, NoDevice, RaceFailed, SearchFailed
from tuner.inspection.answers import Variants
from tuner.search.request import TuneRequest
from tuner.tune import Spent, tune
from tuner.types import TaskSpec, Workload
from workers.child.search_children import SearchChildren
from workers.child.walled_search import WalledSearch, train_base, variants
from workers.child.warm_child import ChildError
from workers.ray.crew import Crew
from workers.ray.fleet import RayFleet
from workers.ray.sharing import Sharing

_RETRY_SECONDS = 0.5
"""Between two attempts to renew a lease while the database is away: shorter than controllers wait with claims then."""
_JOIN_POLL_SECONDS = 0.5
_TURN_SHARE = 0.1
"""Of its ``max_seconds``, what a job waits at most for its turn on the machines. Not tuned."""
_OVERTIME_SHARE = 0.08
"""Of a job's ``max_seconds``, how much longer it may take until its whole model is timed. Its closing races end earlier
(`SearchConfig.overtime_share`). Not tuned."""
_JOINED = "waiting for another job, which searches for the same functions"

log = logging.getLogger("loopwright.job_runner")


class RunEnd(enum.StrEnum):
    """How the run of a claimed job ended."""

    DONE = "done"
    CANCELLED = "cancelled"
    LOST = "lost"
    """Another owner has the job and goes on with it."""
    DRAINED = "drained"
    """All workers of the run are to get no more work; the job waits for others."""


class _Cancelled(Exception):
    """The user wants no more."""


class JobRunner:
    """Runs one claimed job. Submitted modules stay text here: a child behind walls, one of ``searches``, parses them.

    All jobs of this process use the same ``sharing``.
    """

    def __init__(self, database: Database, searches: SearchChildren, sharing: Sharing) -> None:
        self._db = database
        self._searches = searches
        self._sharing = sharing

    @observed
    def run(self, claimed: ClaimedJob, crew: Callable[[], Crew]) -> RunEnd:
        """Tune until every task has an answer, or until the job is cancelled or its lease lost.

        ``crew`` returns the actors for the job, and later those that have joined, too.

        A run that an outage of the database cuts off is begun again from what is stored, as one of which the process
        died: a single write is not repeated, because nobody knows whether it was stored.
        """
        stop = threading.Event()
        keeper = threading.Thread(target=self._keep_lease, args=(claimed, stop), daemon=True)
        keeper.start()
        outage, cut_off = Outage(self._db), False
        try:
            while True:
                try:
                    if cut_off:
                        claimed = self._renewed(claimed)
                        outage.over()
                    self._began = time.monotonic()
                    self._until = self._began + _seconds_left(claimed.job)
                    first = crew()
                    share = self._sharing.share(claimed.job.priority, first.builders, first.measurers)
                    with closing(share) as self._share:
                        self._await_turn(claimed)
                        with self._searches.one() as self._searching:
                            return self._run(claimed, crew)
                except Unavailable as error:
                    outage.sit_out(error)
                    cut_off = True
        except LeaseLost:
            return RunEnd.LOST
        except FleetDrained:
            return RunEnd.DRAINED
        finally:
            stop.set()
            keeper.join()

    def _await_turn(self, claimed: ClaimedJob) -> None:
        """Wait until it is the job's turn to begin, or until it is cancelled. Raises LeaseLost.

        The wait is of the job's time: one with little time does not wait long.
        """
        job = claimed.job
        self._db.jobs.set_activity(job.id, claimed.lease_token, "waiting for its turn on the machines")
        self._share.trials = job.budget.max_trials
        limit = job.budget.max_seconds
        patient_until = math.inf if limit is None else time.monotonic() + _TURN_SHARE * limit

        def waits() -> bool:
            cancelled = self._db.jobs.cancel_requested(job.id, claimed.lease_token)
            return not cancelled and time.monotonic() < patient_until

        self._share.begin(waits)
        self._db.jobs.set_activity(job.id, claimed.lease_token, "preparing the search")

    def _renewed(self, claimed: ClaimedJob) -> ClaimedJob:
        """Renew the lease after an outage, and return the job as it is now. Raises LeaseLost."""
        if not self._db.jobs.renew(claimed.job.id, claimed.lease_token, self._db.lease_seconds):
            raise LeaseLost(f"job {claimed.job.id} ended or was taken over while the database was away")
        return replace(claimed, job=self._db.jobs.get(claimed.job.id))

    def _run(self, claimed: ClaimedJob, crew: Callable[[], Crew]) -> RunEnd:
        job = claimed.job
        worked_off = self._work_off(claimed, crew)
        if worked_off is None:
            # Tasks that were cut short keep the certified best of what they measured.
            self._db.jobs.finish(job.id, claimed.lease_token, JobState.CANCELLED)
            return RunEnd.CANCELLED
        tasks, spent = worked_off
        concluding = time.monotonic()
        prepared = concluding - self._began - spent.search - spent.races
        if not self._concluded(claimed, tasks, crew):
            return RunEnd.DONE
        if spent.search and len(tasks.tasks) > 1:
            self._db.jobs.add_note(job.id, claimed.lease_token, _report(prepared, spent, time.monotonic() - concluding))
        tasks.finish()
        if any(task.answered_from is AnsweredFrom.SEARCH for task in tasks.tasks):
            self._train_base(job.device_class_id)
        return RunEnd.DONE

    def _work_off(self, claimed: ClaimedJob, crew: Callable[[], Crew]) -> tuple[ClaimedTasks, Spent] | None:
        """Answer or tune the tasks of a job until none is open, and return them; None if the job is cancelled."""
        job = claimed.job
        spent, waits = Spent(), False
        while not self._db.jobs.cancel_requested(job.id, claimed.lease_token):
            tasks = ClaimedTasks.read(self._db, claimed)
            if not tasks.open:
                return tasks, spent
            unanswered = [task for task in tasks.open if not self._answer(tasks, task)]
            mine = [task for task in unanswered if self._start(tasks, task)]
            if mine:
                waits = False
                others = [task for task in tasks.tasks if task not in mine]
                spent += self._tune(claimed, mine, others, crew)
            elif unanswered and time.monotonic() >= self._until and len(unanswered) < len(tasks.tasks):
                for task in unanswered:
                    self._db.tasks.fail(task.id, claimed.lease_token, NO_TIME)
            elif unanswered:
                if not waits:
                    self._db.jobs.set_activity(job.id, claimed.lease_token, _JOINED)
                waits = True
                time.sleep(_JOIN_POLL_SECONDS)
        return None

    def _concluded(self, claimed: ClaimedJob, tasks: ClaimedTasks, crew: Callable[[], Crew]) -> bool:
        """Race the job with its reference, if it has one and all of its tasks succeeded, the bests it rechecks, and the
        schedule it ablates.

        Then time its whole model. Return False if that ended the job: it was cancelled, or the race could not be had.
        """
        job = claimed.job
        stored = self._db.gates.of_job(job.id)
        fleet = self._fleet(job, crew)
        meanwhile = self._unless_cancelled(claimed)
        try:
            if stored is not None and stored.result is None and tasks.succeeded:
                self._db.jobs.set_activity(job.id, claimed.lease_token, "racing the reference")
                gate_race.run(self._db, claimed, stored, self._search, fleet, meanwhile)
            recheck_race.run(self._db, claimed, self._search, fleet, meanwhile)
            ablation_race.run(self._db, claimed, self._variants, fleet, meanwhile)
            last = self._until + _OVERTIME_SHARE * (job.budget.max_seconds or 0.0)
            model_time.store(self._db, claimed, tasks, fleet, meanwhile, is_over=lambda: time.monotonic() >= last)
        except _Cancelled:
            fleet.abandon()
            self._db.jobs.finish(job.id, claimed.lease_token, JobState.CANCELLED)
            return False
        except (NoDevice, RaceFailed, SearchFailed) as error:
            message = f"the race could not be run: {error}"
            self._db.jobs.finish(job.id, claimed.lease_token, JobState.FAILED, message)
            return False
        except (Unavailable, LeaseLost):
            fleet.abandon()
            raise
        return True

    def _unless_cancelled(self, claimed: ClaimedJob) -> Callable[[], None]:
        """Return what raises _Cancelled or LeaseLost once the job is to stop; it looks twice a second."""
        next_look = 0.0

        def look() -> None:
            nonlocal next_look
            if (now := time.monotonic()) >= next_look:
                next_look = now + _JOIN_POLL_SECONDS
                if self._db.jobs.cancel_requested(claimed.job.id, claimed.lease_token):
                    raise _Cancelled

        return look

    def _answer(self, tasks: ClaimedTasks, task: TaskView) -> bool:
        """Answer a task from the database if it is known well enough; a running task is this job's to search."""
        if task.state is TaskState.RUNNING:
            return False
        joined = task.state is TaskState.JOINED
        return tasks.answer(task, AnsweredFrom.JOINED if joined else AnsweredFrom.DATABASE)

    def _start(self, tasks: ClaimedTasks, task: TaskView) -> bool:
        """Begin to tune a task; return False if another job tunes the same, which this one joins, or has done so."""
        if self._db.tasks.try_start(task.id, tasks.claimed.lease_token):
            # That job may have ended since this one looked for an answer.
            return not self._answer(tasks, task)
        self._db.tasks.join(task.id, tasks.claimed.lease_token)
        return False

    def _tune(
        self,
        claimed: ClaimedJob,
        tasks: Sequence[TaskView],
        others: Sequence[TaskView],
        crew: Callable[[], Crew],
    ) -> Spent:
        job = claimed.job
        specs = [self._spec(task, claimed) for task in tasks]
        share = job.budget.trials_of_a_task(len(tasks) + len(others))
        request = TuneRequest(
            tasks=specs,
            target_json=job.target_json,
            space=None if claimed.inputs.space_json is None else json.loads(claimed.inputs.space_json),
            budget=replace(
                job.budget,
                # Tasks that other jobs answer leave their share of the trials unused. What an earlier run of this job
                # has made in tasks that it could finish is used, be it more than their share.
                max_trials=min(share * len(tasks), job.budget.max_trials - sum(task.trials for task in others))
                if others
                else job.budget.max_trials,
                max_seconds=None if math.isinf(self._until) else self._until - time.monotonic(),
                max_device_seconds=self._device_seconds_left(job, others),
            ),
            seed=job.seed,
            base_model=self._db.cost_models.get(job.device_class_id, TVM_VERSION),
            peak_flops=self._db.devices.peak_flops(job.device_class_id),
        )
        self._share.trials = request.budget.max_trials - sum(task.trials for task in tasks)
        self._share.until = self._until
        fleet = self._fleet(job, crew)
        self._db.jobs.set_activity(job.id, claimed.lease_token, "searching")
        with closing(self._search(request)) as search:
            return tune(request, search, fleet, DatabaseLedger(self._db, claimed, tasks, share, others))

    def _search(self, request: TuneRequest) -> WalledSearch:
        return WalledSearch(self._searching, request)

    def _variants(self, found: RecordDetail) -> Variants:
        """Return the neighbours of a record's program. Raises SearchFailed."""
        record = found.record
        assert record.trace_json is not None, "a baseline has no neighbours"
        try:
            return variants(self._searching, found.workload.module_json, record.target_json, record.trace_json, MOST)
        except ChildError as error:
            raise SearchFailed(f"its neighbours cannot be found: {error.for_users}") from error

    def _fleet(self, job: JobView, crew: Callable[[], Crew]) -> RayFleet:
        first = crew()
        return RayFleet(
            job.target_json,
            first.builders,
            first.measurers,
            drained=self._db.workers.drained,
            crew=crew,
            share=self._share,
        )

    def _device_seconds_left(self, job: JobView, others: Sequence[TaskView]) -> float | None:
        """Return how long the tasks of a run may be in measuring slots, after what the job's other tasks have used."""
        if job.budget.max_device_seconds is None:
            return None
        return job.budget.max_device_seconds - self._db.trials.device_seconds([task.id for task in others])

    def _spec(self, task: TaskView, claimed: ClaimedJob) -> TaskSpec:
        found = self._db.workloads.get(task.workload_hash)
        summary = found.summary
        workload = Workload(
            summary.hash, summary.family, task.name, found.module_json, found.script, summary.args, summary.operation
        )
        # Known traces come from the built-in space; a user's own space makes other choices.
        known, relatives = [], []
        if claimed.inputs.space_json is None:
            known = self._db.trials.known(task.workload_hash, claimed.job.device_class_id)
            relatives = self._db.trials.relatives(task.workload_hash, claimed.job.device_class_id)
        barred = self._db.trials.barred(task.workload_hash, claimed.job.device_class_id)
        return TaskSpec(workload, task.weight, tuple(relatives), tuple(known), tuple(barred))

    def _train_base(self, device_class_id: str) -> None:
        """Train the device class's base model, from which the next jobs start, if it is due."""
        if not self._db.cost_models.due(device_class_id, TVM_VERSION):
            return
        available = self._db.cost_models.available(device_class_id, TVM_VERSION)
        found = self._db.cost_models.samples(device_class_id, TVM_VERSION)
        samples = [(sample.workload_hash, sample.features, sample.median) for sample in found]
        try:
            model = train_base(self._searching, samples)
        except ChildError as error:
            log.warning("no base model was trained for %s: %s", device_class_id, error)
            return
        workloads = len({group for group, *_ in samples})
        self._db.cost_models.put(
            device_class_id, TVM_VERSION, model, samples=len(samples), available=available, workloads=workloads
        )

    def _keep_lease(self, claimed: ClaimedJob, stop: threading.Event) -> None:
        """Renew the lease until `stop` is set. After a lost lease the next write ends the run.

        While the database is away it tries on; the time of an outage does not count as the job's.
        """
        last, wait = time.monotonic(), RENEW_SECONDS
        while not stop.wait(wait):
            now = time.monotonic()
            try:
                if not self._db.jobs.renew(claimed.job.id, claimed.lease_token, self._db.lease_seconds, now - last):
                    return
                last, wait = now, RENEW_SECONDS
            except Unavailable:
                last, wait = time.monotonic(), _RETRY_SECONDS


def _seconds_left(job: JobView) -> float:
    """Return the seconds that a job may still take; infinite if it has no limit."""
    limit = job.budget.max_seconds
    return math.inf if limit is None else limit - job.elapsed_s


def _report(prepared: float, spent: Spent, model: float) -> str:
    """Return the note that says where the time of a job went.

    Args:
        prepared: the seconds before the search.
        model: the seconds after the closing races.
    """
    return (
        f"to prepare the search took {prepared:.0f} s, the search {spent.search:.0f} s, the closing races "
        f"{spent.races:.0f} s, and the whole model {model:.0f} s"
    )

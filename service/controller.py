"""The controller: claims jobs under leases, answers them from the database or places their loops on the cluster.

Any number of controllers may share a database and a cluster. One that dies loses its leases after a while, or at once
when the same one starts again, and its jobs are claimed anew.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import ray

from db import Database
from db.errors import DatabaseDamaged, Unavailable
from db.leases import RENEW_SECONDS
from db.states import AnsweredFrom, JobState, TaskState
from db.views import ClaimedJob
from service.claimed_tasks import ClaimedTasks
from service.exit_status import ExitStatus
from service.fleet.watch import Watch
from service.job_runner import JobRunner, RunEnd
from service.outage import Outage, await_database
from service.rechecks import jobs as rechecks
from service.settings import Settings
from service.webhooks.deliver import Deliverer
from tuner.errors import LeaseLost
from tuner.types import DeviceClass
from workers.cluster import JOBS, Cluster, Offer, connect, job_slots, present
from workers.liveness import watch_ray

_POLL_SECONDS = 0.1
_HEARTBEAT_SECONDS = 5.0
_SWEEP_SECONDS = 3600.0
"""Between two looks for entries of the audit log and deliveries of webhooks that are too old."""
_DELIVERY_DAYS = 30
_RECHECK_SECONDS = 600.0
"""Between two looks for bests that are to be raced anew."""
_ROOM_SECONDS = 1.0
"""Between two questions for how many loops the cluster has room."""
_ANSWERS_SECONDS = 1.0
"""While all places for loops are taken: between two looks for jobs that the database answers."""
_SLOTS_SECONDS = 10.0
_CONNECT_SECONDS = 120.0
"""For Ray to start, twice if need be: a busy machine takes half a minute for it."""
_JOBS_PER_RUNNER = 50
"""After so many a loop's process is replaced: whatever it has piled up goes with it."""
MAX_ATTEMPTS = 10
"""Claims of one job that ended in a crash: a job that kills its loop must not be claimed for ever. A claim that is
given back in order does not count."""
_JOIN_SECONDS = 1.0
"""That a heartbeat waits for nodes that are about to join, and that the next one comes after."""
_LOOP_SECONDS = 120.0
"""For a loop's process to start, during which the controller renews the job's lease. Not tuned."""
_LONG_TURN_SECONDS = 3 * RENEW_SECONDS
"""Less than what is left of a lease that is renewed in time."""
_HOLD_SECONDS = 2 * RENEW_SECONDS + 1.0
"""After an outage, or a turn that was held up, for so long: who has a lease may have been held up by the same, and
renews it now. Nothing is claimed meanwhile."""

log = logging.getLogger("loopwright.controller")


@dataclass(slots=True)
class _Runner:
    """The actor of a tuning loop, and the number of jobs that it was given."""

    actor: Any
    jobs: int = 0


@dataclass(slots=True)
class _Running:
    claimed: ClaimedJob
    runner: _Runner
    workers: frozenset[str]
    """Ids of the offers that the job is measured on."""
    since: float


class Controller:
    def __init__(self, settings: Settings, database: Database, cluster: Cluster) -> None:
        self._settings = settings
        self._db = database
        self._cluster = cluster
        self._offers: list[Offer] = []
        self._running: dict[Any, _Running] = {}
        self._spare: _Runner | None = None
        self._waiting: list[ClaimedJob] = []
        self._watch = Watch(database, cluster)
        self._next_heartbeat = 0.0
        self._next_sweep = 0.0
        self._next_recheck = 0.0
        self._next_claim = 0.0
        self._next_answers = 0.0
        self._turned = math.inf
        """When the last turn began."""
        self._is_warm = False
        """Whether a loop's process was started in advance."""
        self._cut_off = False
        """Whether an outage has ended the last turn in the middle."""
        self._next_slots = 0.0
        self._room = 1
        """Places for loops in the cluster, when it was last asked."""

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop; jobs in flight go back to the queue then."""
        # A daemon: if the controller fails, its process ends, and another one sends what this one has claimed.
        deliverer = threading.Thread(target=Deliverer(self._db).run, args=(stop,), name="webhooks", daemon=True)
        deliverer.start()
        keeper = threading.Thread(target=self._keep_leases, args=(stop,), name="leases", daemon=True)
        keeper.start()
        outage = Outage(self._db)
        while not stop.is_set():
            try:
                if self._cut_off:
                    self._recover()
                idle = self._turn()
                outage.over()
                if idle:
                    stop.wait(_POLL_SECONDS)
            except Unavailable as error:
                self._cut_off = True
                outage.sit_out(error, stop)
        keeper.join(_HEARTBEAT_SECONDS)
        self._let_go()
        deliverer.join()

    def _turn(self) -> bool:
        """Look after everything once. Return whether there was nothing to do."""
        before, self._turned = self._turned, time.monotonic()
        self._heartbeat()
        if not self._is_warm:
            self._spare, self._is_warm = self._new_runner(), True
        self._absorb()
        if time.monotonic() - before > _LONG_TURN_SECONDS:
            self.hold_claims()
        return not self._claim()

    def _recover(self) -> None:
        """After an outage: keep the leases of what runs, and put back what was claimed and not heard of."""
        held = [*self._waiting, *(running.claimed for running in self._running.values())]
        for claimed in held:
            # One that is lost is the loop's to notice, or that of the next heartbeat.
            self._db.jobs.renew(claimed.job.id, claimed.lease_token, self._db.lease_seconds)
        self._db.jobs.release_forgotten(self._settings.owner, [claimed.lease_token for claimed in held])
        self.hold_claims()
        self._next_heartbeat = 0.0
        self._cut_off = False

    def hold_claims(self) -> None:
        """Claim nothing for a while, in which those who have a lease can renew it."""
        self._next_claim = time.monotonic() + _HOLD_SECONDS

    def _let_go(self) -> None:
        """End all loops and give their jobs back."""
        for runner in filter(None, [self._spare, *(running.runner for running in self._running.values())]):
            ray.kill(runner.actor)
        try:
            for claimed in [*self._waiting, *(running.claimed for running in self._running.values())]:
                self._db.jobs.release(claimed.job.id, claimed.lease_token)
        except Unavailable as error:
            log.warning("%s. The leases of this controller's jobs end by themselves", error)

    def _heartbeat(self) -> None:
        """Keep actors on every node and the workers' rows fresh, and take jobs from workers in quarantine."""
        if time.monotonic() < self._next_heartbeat:
            return
        offers = self._cluster.reconcile(_JOIN_SECONDS)
        held_out = self._watch.beat(offers)
        self._offers = [offer for offer in offers if offer.id not in held_out and not self._watch.is_silent(offer)]
        for reference, running in list(self._running.items()):
            if held_out & running.workers:
                del self._running[reference]
                ray.kill(running.runner.actor)
                self._db.jobs.release(running.claimed.job.id, running.claimed.lease_token)
        waiting, self._waiting = self._waiting, []
        for claimed in waiting:
            if self._db.jobs.renew(claimed.job.id, claimed.lease_token, self._db.lease_seconds):
                self._try(claimed)
        if self._settings.recheck_days and time.monotonic() > self._next_recheck:
            rechecks.submit_due(self._db, self._offers, self._settings.recheck_days)
            self._next_recheck = time.monotonic() + _RECHECK_SECONDS
        if time.monotonic() > self._next_sweep:
            self._db.audit.forget(self._settings.audit_days)
            self._db.webhooks.forget(_DELIVERY_DAYS)
            self._next_sweep = time.monotonic() + _SWEEP_SECONDS
        soon = _JOIN_SECONDS if self._cluster.expects_nodes else _HEARTBEAT_SECONDS
        self._next_heartbeat = time.monotonic() + soon

    def _keep_leases(self, stop: threading.Event) -> None:
        """Renew the leases of jobs that wait for a worker, and of those whose loops have just begun to start.

        Once a loop runs, it renews the lease itself. A heartbeat may take longer than a lease lasts.
        """
        while not stop.wait(RENEW_SECONDS):
            young = time.monotonic() - _LOOP_SECONDS
            starting = [running.claimed for running in list(self._running.values()) if running.since > young]
            for claimed in [*self._waiting, *starting]:
                with contextlib.suppress(Unavailable):
                    self._db.jobs.renew(claimed.job.id, claimed.lease_token, self._db.lease_seconds)

    def _claim(self) -> bool:
        """Take up one job, if the cluster has room for its loop or the database its answers.

        Return False if there is nothing to do.
        """
        now = time.monotonic()
        full = len(self._running) >= self._slots()
        if now < self._next_claim or (full and now < self._next_answers):
            return False
        claimed = self._db.jobs.claim(self._settings.owner, self._db.lease_seconds, answered=full)
        if claimed is None:
            self._next_answers = now + _ANSWERS_SECONDS
            return False
        self._try(claimed)
        return True

    def _slots(self) -> int:
        """Return how many loops the cluster has room for, as it was a moment ago: to ask Ray costs milliseconds."""
        now = time.monotonic()
        if now >= self._next_slots:
            slots = job_slots()
            if self._room and not slots:
                log.warning("the nodes that offer %s have left the cluster; jobs wait until one is back", JOBS)
            self._room, self._next_slots = slots, now + _ROOM_SECONDS
        return self._room

    def _try(self, claimed: ClaimedJob) -> None:
        try:
            self._take_up(claimed)
        except LeaseLost:
            log.warning("job %s was taken over", claimed.job.id, extra={"job": claimed.job.id})

    def _take_up(self, claimed: ClaimedJob) -> None:
        job = claimed.job
        if job.attempts > MAX_ATTEMPTS:
            self._db.jobs.finish(
                job.id, claimed.lease_token, JobState.FAILED, f"given up after {MAX_ATTEMPTS} attempts"
            )
            return
        if self._db.jobs.cancel_requested(job.id):
            self._db.jobs.finish(job.id, claimed.lease_token, JobState.CANCELLED)
            return
        tasks = ClaimedTasks.read(self._db, claimed)
        unanswered = [
            task
            for task in tasks.open
            if task.state is not TaskState.QUEUED or not tasks.answer(task, AnsweredFrom.DATABASE)
        ]
        if not unanswered:
            gate = self._db.gates.of_job(job.id)
            raced = gate is None or gate.result is not None
            if raced and all(recheck.result is not None for recheck in self._db.rechecks.of_job(job.id)):
                tasks.finish()
                return
        wanted = self._db.devices.get(job.device_class_id)
        offers = present(offer for offer in self._offers if same_machine(offer.device_class, wanted))
        if not offers:
            # The workers left after the job was accepted, or are in quarantine. The job waits until one is back.
            self._waiting.append(claimed)
            return
        runner, self._spare = self._spare or self._new_runner(), None
        runner.jobs += 1
        builders = sorted({name for offer in offers for name in offer.builders})
        measurers = {offer.measurer: offer.id for offer in offers}
        workers = frozenset(measurers.values())
        self._running[runner.actor.run.remote(claimed, builders, measurers)] = _Running(
            claimed, runner, workers, time.monotonic()
        )

    def _new_runner(self) -> _Runner:
        runner = ray.remote(JobRunner).options(num_cpus=0, resources={JOBS: 1}, max_restarts=0)
        return _Runner(runner.remote(self._settings.database, self._settings.walls))

    def _absorb(self) -> None:
        """Collect loops that ended; the job of one that died goes back into the queue."""
        if not self._running:
            return
        ready, _ = ray.wait(list(self._running), num_returns=len(self._running), timeout=0)
        for reference in ready:
            running = self._running.pop(reference)
            try:
                outcome = ray.get(reference)
            except DatabaseDamaged as error:
                # Ray raises an error of its own that is of the loop's type, too, and whose text is a traceback.
                raise getattr(error, "cause", error) from None
            except ray.exceptions.RayError as error:
                job_id = running.claimed.job.id
                log.warning("the loop of job %s died: %s", job_id, error, extra={"job": job_id})
                ray.kill(running.runner.actor)
                self._db.jobs.release(running.claimed.job.id, running.claimed.lease_token, died=True)
                continue
            log.info("job %s: %s", running.claimed.job.id, outcome, extra={"job": running.claimed.job.id})
            if self._spare is None and running.runner.jobs < _JOBS_PER_RUNNER:
                # A new one's child would spend seconds on loading TVM and XGBoost.
                self._spare = running.runner
            else:
                ray.kill(running.runner.actor)
            if outcome is RunEnd.LOST:
                # It may have lost one of its tasks, and not the job, which then waits for nobody.
                self._db.jobs.release(running.claimed.job.id, running.claimed.lease_token)


def same_machine(offered: DeviceClass, wanted: DeviceClass) -> bool:
    """Return whether two device classes differ at most in the target: a user's own target runs on the same machines."""
    return replace(offered, target_json=wanted.target_json) == wanted


def _has_slots(stop: threading.Event) -> bool:
    """Return whether a node offers a place to loops of jobs. One that is about to join has `_SLOTS_SECONDS` for it."""
    until = time.monotonic() + _SLOTS_SECONDS
    while job_slots() == 0:
        if time.monotonic() > until or stop.wait(_POLL_SECONDS):
            return False
    return True


def main(settings: Settings) -> None:
    """``python -m service controller``: until SIGTERM or SIGINT."""
    waited = await_database(settings.database)
    database = Database(settings.database)
    _expire_own_leases(database, settings)
    stop = threading.Event()
    with _limit_of(_CONNECT_SECONDS, "Ray did not start, or did not answer"):
        connect(settings.ray_address, settings.data_dir)
    watch_ray(lambda reason: _end_without_ray(reason, stop))
    # After connecting: ray.init sets handlers of its own.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        if not _has_slots(stop) and not stop.is_set():
            sys.exit(
                f"loopwright: no node of the Ray cluster offers {JOBS}, so that no job can run. Start Ray on a node "
                f"that may know the database, this one for example, with --resources='{{\"{JOBS}\": 2}}'"
            )
        controller = Controller(settings, database, Cluster(settings.walls))
        if waited:
            controller.hold_claims()
        controller.run(stop)
    finally:
        stop.set()
        ray.shutdown()
        database.close()


def _expire_own_leases(database: Database, settings: Settings) -> None:
    """Take up again at once what an earlier controller of this name had, and did not give back."""
    outage = Outage(database)
    while True:
        try:
            database.jobs.expire_leases(settings.owner)
            return
        except Unavailable as error:
            outage.sit_out(error)


@contextlib.contextmanager
def _limit_of(seconds: float, reason: str) -> Iterator[None]:
    """End the process if the block takes longer: Ray waits for ever for a part of it that died during its start."""
    done = threading.Event()
    timer = threading.Timer(seconds, _end_without_ray, (f"{reason} within {seconds:.0f} s", done))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        done.set()
        timer.cancel()


def _end_without_ray(reason: str, stop: threading.Event) -> None:
    """End the process at once: what waits for Ray would wait for ever. Whoever started it starts it again."""
    if stop.is_set():
        return  # Ray is being shut down
    print(f"loopwright: {reason}, so that this controller ends; it can be started again", file=sys.stderr, flush=True)
    os._exit(ExitStatus.RAY_LOST)

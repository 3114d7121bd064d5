"""The controller: claims jobs under leases, answers them from the database or runs their loops.

Any number of controllers may share a database and a cluster. A controller that dies loses its leases after a while, or
at once when the same controller starts again. Its jobs are then claimed again.
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
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

import ray

from db import Database
from db.errors import DatabaseDamaged, Unavailable
from db.inputs import LAST, LabelledMachine
from db.jobs.queue import FAR, Waiting
from db.leases import RENEW_SECONDS
from db.views import ClaimedJob
from loopwright.codegen import worker_labels
from loopwright.codegen.kinds import AnsweredFrom, JobState, TaskState
from service.controller.claimed_tasks import ClaimedTasks
from service.controller.device_turns import DeviceTurns
from service.controller.housekeeping import Housekeeping
from service.controller.job_runner import JobRunner, RunEnd
from service.controller.loops import Loop, Loops
from service.fleet.watch import Watch
from service.outage import Outage, await_database
from service.process.exit_status import ExitStatus, leave
from service.rechecks import imports
from service.rechecks import jobs as rechecks
from service.settings import Settings
from service.webhooks.deliver import Deliverer
from tuner.errors import LeaseLost
from tuner.types import DeviceClass
from workers.boards.config import read_boards
from workers.child.lock_watch import LockWatch
from workers.child.search_children import SearchChildren
from workers.progress import Progress
from workers.ray.cluster import Cluster, Offer, connect, crew_of
from workers.ray.liveness import watch_ray
from workers.ray.sharing import Sharing
from workers.walls.levels import choose

_POLL_SECONDS = 0.1
"""Between two looks for loops that have ended, and for news of jobs that were queued."""
_CLAIM_SECONDS = 1.0
"""Between two looks for jobs without news: leases end unannounced."""
_IDLE_SECONDS = 5.0
"""The same while no job waits or runs, and no lease can end."""
_HEARTBEAT_SECONDS = 5.0
_RECHECK_SECONDS = 600.0
"""Between two queries for bests that are due for a recheck, and for imported ones that are not certified."""
_ANSWERS_SECONDS = 1.0
"""Between two looks for jobs that the database answers, whatever place there is."""
_ROOM_SECONDS = 1.0
"""While all places are taken: between two looks for jobs that wait."""
_WAIT_SECONDS = 5.0
"""After so long in the queue a job may take the place of another. Not tuned."""
_TURN_SECONDS = 60.0
"""A job has its place for so long before one of its priority may take it. Not tuned: to begin again costs seconds."""
_LEAVE_SECONDS = 2.0
"""For loops to notice that their jobs were put back, and to stop what their workers do."""
MAX_ATTEMPTS = 10
"""Claims of one job that ended in a crash: a job that kills its loop must not be claimed for ever. A claim that is
given back in order does not count."""
_LOOK_SECONDS = 1.0
"""Between two looks at whether a start of Ray gets on."""
_ASKER_SECONDS = 300.0
"""On a service of one host, jobs that no user waits for are not begun so soon after a user's job: whoever asked for it
compiles the model there now, and times it beside other engines. Not tuned."""
_JOIN_SECONDS = 1.0
"""That a heartbeat waits for nodes that are about to join, and that the next one comes after."""
_LONG_TURN_SECONDS = 3 * RENEW_SECONDS
"""Less than what is left of a lease that is renewed in time."""
_HOLD_SECONDS = 2 * RENEW_SECONDS + 1.0
"""After an outage, or a turn that was held up, for so long: who has a lease may have been held up by the same, and
renews it now. Nothing is claimed meanwhile."""

log = logging.getLogger("loopwright.controller")


class Controller:
    def __init__(
        self,
        settings: Settings,
        database: Database,
        cluster: Cluster,
        loops: Loops,
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        """``prepare`` is called when there are devices and a job can begin: what it costs does not delay them."""
        self._settings = settings
        self._db = database
        self._cluster = cluster
        self._loops = loops
        self._prepare = prepare
        self._offers: list[Offer] = []
        self._watch = Watch(database, cluster)
        self._next_heartbeat = 0.0
        self._next_recheck = 0.0
        self._next_claim = 0.0
        """Until then nothing is claimed, news or not."""
        self._news = database.job_news()
        self._next_look = 0.0
        self._next_answers = 0.0
        self._next_room = 0.0
        self._asked = -math.inf
        """When a user's job was last at work here, or answered."""
        self._turned = math.inf
        """When the last turn began."""
        self._cut_off = False
        """Whether an outage has ended the last turn in the middle."""

    def offers(self) -> list[Offer]:
        """Return the devices that jobs can use now; other threads may ask."""
        return self._offers

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop. Running jobs then return to the queue."""
        # A daemon: if the controller fails, its process ends, and another one sends what this one has claimed.
        deliverer = threading.Thread(target=Deliverer(self._db).run, args=(stop,), name="webhooks", daemon=True)
        deliverer.start()
        housekeeping = Housekeeping(self._db, self._settings)
        threading.Thread(target=housekeeping.run, args=(stop,), name="housekeeping", daemon=True).start()
        outage = Outage(self._db)
        while not stop.is_set():
            try:
                if self._cut_off:
                    self._recover()
                idle = self._turn()
                outage.over()
                if idle:
                    self._rest(stop)
            except Unavailable as error:
                self._cut_off = True
                outage.sit_out(error, stop)
        self._let_go()
        self._news.close()
        deliverer.join()

    def _rest(self, stop: threading.Event) -> None:
        """Wait for a moment, or while no loop runs for news and until it is time to look after something."""
        while not stop.wait(_POLL_SECONDS) and not self._loops.running:
            if self._news.there_is():
                self._next_look = 0.0
                return
            if time.monotonic() >= min(self._next_heartbeat, self._next_look):
                return

    def _turn(self) -> bool:
        """Look after everything once. Return whether there was nothing to do."""
        before, self._turned = self._turned, time.monotonic()
        self._heartbeat()
        self._absorb()
        if time.monotonic() - before > _LONG_TURN_SECONDS:
            self.hold_claims()
        return not self._claim()

    def _recover(self) -> None:
        """After an outage: put back what was claimed and not heard of. Loops renew their leases themselves."""
        held = [loop.claimed.lease_token for loop in self._loops.running]
        self._db.jobs.release_forgotten(self._settings.owner, held)
        self.hold_claims()
        self._next_heartbeat = 0.0
        self._cut_off = False

    def hold_claims(self) -> None:
        """Claim no job for a while, so that the owners of leases can renew them first."""
        self._next_claim = self._next_look = time.monotonic() + _HOLD_SECONDS

    def _let_go(self) -> None:
        """Give all jobs back; their loops notice and stop what their workers do."""
        try:
            for loop in self._loops.running:
                self._put_back(loop)
        except Unavailable as error:
            log.warning("%s. The leases of this controller's jobs end by themselves", error)
            return
        self._loops.join(_LEAVE_SECONDS)

    def _put_back(self, loop: Loop, *, to_end: bool = False) -> None:
        """End a loop before its job does. It notices when it looks at its lease, twice a second."""
        loop.leaving = True
        self._db.jobs.release(loop.claimed.job.id, loop.claimed.lease_token, to_end=to_end)

    def _heartbeat(self) -> None:
        """Keep actors on every node and the workers' rows fresh, and take jobs from workers in quarantine."""
        if time.monotonic() < self._next_heartbeat:
            return
        offers = self._cluster.reconcile(_JOIN_SECONDS)
        held_out = self._watch.beat(offers)
        unused = held_out | self._watch.drained
        self._use([offer for offer in offers if offer.id not in unused and not self._watch.is_silent(offer)])
        self._next_look = 0.0
        for loop in self._loops.running:
            if held_out & loop.workers and not loop.leaving:
                self._put_back(loop)
        if self._settings.recheck_days and time.monotonic() > self._next_recheck:
            machines = [(offer.device_class, offer.system) for offer in self._offers]
            rechecks.submit_due(self._db, machines, self._settings.recheck_days)
            imports.submit_due(self._db, [device_class for device_class, _ in machines])
            self._next_recheck = time.monotonic() + _RECHECK_SECONDS
        soon = _JOIN_SECONDS if self._cluster.expects_nodes else _HEARTBEAT_SECONDS
        self._next_heartbeat = time.monotonic() + soon

    def _use(self, offers: list[Offer]) -> None:
        """Measure on these from now on."""
        before, after = ({offer.id for offer in each} for each in (self._offers, offers))
        for worker_id in sorted(after - before):
            log.info("%s can be used", worker_id, extra={"worker": worker_id})
        for worker_id in sorted(before - after):
            log.info("%s cannot be used", worker_id, extra={"worker": worker_id})
        if after and not before:
            self._prepare()
        self._offers = offers

    def _claim(self) -> bool:
        """Take up one job, if there is a place for its loop or the database has its answers.

        Return False if there is nothing to do.
        """
        now = time.monotonic()
        news = self._news.there_is()
        if now < self._next_claim or not (news or now >= self._next_look):
            return False
        machines = {LabelledMachine(offer.device_class, frozenset(offer.labels.items())) for offer in self._offers}
        claimed, leaving = None, None
        awaited = self._awaited(now)
        if not self._loops.are_full:
            claimed = self._db.jobs.claim(
                self._settings.owner, self._db.lease_seconds, machines=machines, waiting=awaited
            )
        elif now >= self._next_room:
            self._next_room = now + _ROOM_SECONDS
            claimed, leaving = self._exchange(machines)
        if claimed is None and now >= self._next_answers:
            claimed = self._db.jobs.claim(self._settings.owner, self._db.lease_seconds, answered=True)
            self._next_answers = now + (0.0 if claimed else _ANSWERS_SECONDS)
        if claimed is None:
            is_idle = not self._loops.running and not self._db.jobs.are_unfinished()
            self._next_look = now + (_IDLE_SECONDS if is_idle else _CLAIM_SECONDS)
            return False
        self._next_look = now
        try:
            self._take_up(claimed, leaving)
        except LeaseLost:
            log.warning("job %s was taken over", claimed.job.id, extra={"job": claimed.job.id})
        return True

    def _awaited(self, now: float) -> Waiting | None:
        """Return which jobs may begin now, and put back those that may not go on. None: any may."""
        running = self._loops.running
        if any(loop.claimed.job.priority > LAST for loop in running):
            self._asked = now
        if len({offer.host for offer in self._offers}) != 1 or now - self._asked >= _ASKER_SECONDS:
            return None
        for loop in running:
            if loop.claimed.job.priority <= LAST and not loop.leaving:
                self._put_back(loop, to_end=True)
        return Waiting(LAST + 1, FAR)

    def _exchange(self, machines: Collection[LabelledMachine]) -> tuple[ClaimedJob, Loop] | tuple[None, None]:
        """Claim a job that waits; return it with the loop that is to end its turn for it.

        That has a job of a lower priority, or of the same and long at work. The claim comes first: of several
        controllers whose places are taken, one gets the job, and the others give up nothing for it.
        """
        loops = self._loops.running
        waiting = self._db.jobs.waiting(_WAIT_SECONDS, machines)
        lowest = None if waiting is None else self._db.jobs.lowest_priority()
        if lowest is not None and lowest < min(loop.claimed.job.priority for loop in loops):
            # A job of another controller is to go first, unless that one has no use for what waits.
            waiting = self._db.jobs.waiting(2 * _WAIT_SECONDS, machines)
        if waiting is None or any(loop.leaving for loop in loops):
            return None, None
        long_ago = time.monotonic() - _TURN_SECONDS
        users = Counter(loop.claimed.job.user_name for loop in loops)

        def rank(loop: Loop) -> tuple[int, int, float]:
            """Return the sort key of running jobs: lowest priority, then user with the most jobs, then longest turn."""
            job = loop.claimed.job
            return job.priority, -users[job.user_name], loop.since

        ready = [
            loop
            for loop in loops
            if loop.claimed.job.priority < waiting.priority
            or (loop.claimed.job.priority == waiting.priority and loop.since < long_ago)
        ]
        if not ready:
            return None, None
        loop = min(ready, key=rank)
        claimed = self._db.jobs.claim(self._settings.owner, self._db.lease_seconds, machines=machines, waiting=waiting)
        return (None, None) if claimed is None else (claimed, loop)

    def _take_up(self, claimed: ClaimedJob, leaving: Loop | None) -> None:
        """Answer a job from the database, or start its loop. That needs a free place, or that of ``leaving``."""
        job = claimed.job
        if job.priority > LAST:
            self._asked = time.monotonic()
        if self._is_over(claimed) or self._is_answered(claimed):
            return
        wanted = self._db.devices.get(job.device_class_id)

        def serving() -> list[Offer]:
            return [
                offer
                for offer in self._offers
                if same_machine(offer.device_class, wanted) and worker_labels.matches(offer.labels, job.labels)
            ]

        offers = self._cluster.present(serving())
        if (self._loops.are_full and leaving is None) or not offers:
            # Its answer has just gone, or its workers, which are looked for at the next heartbeat. It keeps its place.
            self._db.jobs.release(job.id, claimed.lease_token)
            self._next_answers = time.monotonic() + _ANSWERS_SECONDS
            if not offers:
                gone = {offer.id for offer in serving()}
                self._use([offer for offer in self._offers if offer.id not in gone])
            return
        if leaving is not None:
            job_id = leaving.claimed.job.id
            log.info("job %s goes on when it is its turn again", job_id, extra={"job": job_id})
            self._put_back(leaving, to_end=True)
        self._loops.start(claimed, crew_of(offers), lambda: crew_of(serving()))

    def _is_over(self, claimed: ClaimedJob) -> bool:
        """End a job that was taken up too often, or that is cancelled. Return whether it was one of these."""
        job = claimed.job
        if job.attempts > MAX_ATTEMPTS:
            self._db.jobs.finish(
                job.id, claimed.lease_token, JobState.FAILED, f"given up after {MAX_ATTEMPTS} attempts"
            )
            return True
        if self._db.jobs.cancel_requested(job.id, claimed.lease_token):
            self._db.jobs.finish(job.id, claimed.lease_token, JobState.CANCELLED)
            return True
        return False

    def _is_answered(self, claimed: ClaimedJob) -> bool:
        """Answer tasks from the database, and finish a job of which nothing is left then. Return whether it was one."""
        tasks = ClaimedTasks.read(self._db, claimed)
        unanswered = [
            task
            for task in tasks.open
            if task.state is not TaskState.QUEUED or not tasks.answer(task, AnsweredFrom.DATABASE)
        ]
        if unanswered or not self._is_raced(claimed.job.id):
            return False
        tasks.finish()
        return True

    def _is_raced(self, job_id: str) -> bool:
        """Return whether all races that a job is for have their results."""
        races = (self._db.gates.of_job(job_id), self._db.ablations.of_job(job_id), *self._db.rechecks.of_job(job_id))
        return all(race is None or race.result is not None for race in races)

    def _absorb(self) -> None:
        """Collect loops that ended; the job of one that failed goes back into the queue."""
        for loop in self._loops.ended():
            self._next_look = 0.0  # there is a place
            job_id, token = loop.claimed.job.id, loop.claimed.lease_token
            if isinstance(loop.outcome, DatabaseDamaged):
                raise loop.outcome
            if isinstance(loop.outcome, Exception):
                self._db.jobs.release(job_id, token, died=True)
                continue
            log.info("job %s: %s", job_id, loop.outcome, extra={"job": job_id})
            if loop.outcome is RunEnd.DRAINED:
                self._next_heartbeat = 0.0  # which tells of the workers that are drained
            if loop.outcome in (RunEnd.LOST, RunEnd.DRAINED):
                # It may have lost one of its tasks, and not the job, which then waits for nobody.
                self._db.jobs.release(job_id, token)


def same_machine(offered: DeviceClass, wanted: DeviceClass) -> bool:
    """Return whether two device classes differ at most in the target: a user's own target runs on the same machines."""
    return replace(offered, target_json=wanted.target_json) == wanted


def main(settings: Settings) -> None:
    """``python -m service controller``: until SIGTERM or SIGINT."""
    waited = await_database(settings.database)
    database = Database(settings.database, connections=settings.database_connections)
    _expire_own_leases(database, settings)
    stop = threading.Event()
    progress = Progress()
    with _while_it_goes_on(progress, "Ray did not start, or did not answer"):
        try:
            connect(settings.ray_address, settings.data_dir, settings.walls, progress)
        except ConnectionError as error:
            why = ". Its head is away, or is starting" if settings.ray_address else ""
            leave(ExitStatus.RAY_LOST, f"{error}{why}; start this controller again")
    watch_ray(lambda reason: _end_without_ray(reason, stop))
    # After connecting: ray.init sets handlers of its own.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        LockWatch().start()  # this machine may have no measurer, which watches the lock elsewhere
        searches, sharing = SearchChildren(choose(settings.walls)), Sharing()
        loops = Loops(lambda: JobRunner(database, searches, sharing), settings.places)
        cluster = Cluster(settings.walls, read_boards(settings.rpc_devices))
        controller = Controller(settings, database, cluster, loops, searches.start)
        if waited:
            controller.hold_claims()
        with contextlib.ExitStack() as shared:
            if database.is_server:
                turns = DeviceTurns(database, settings.owner, sharing, controller.offers)
                shared.enter_context(turns.taken(stop))
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
            database.device_leases.give_up(settings.owner)
            return
        except Unavailable as error:
            outage.sit_out(error)


@contextlib.contextmanager
def _while_it_goes_on(progress: Progress, reason: str) -> Iterator[None]:
    """End the process if the block makes no progress: Ray waits for ever for a part of it that died in its start."""
    done = threading.Event()

    def look() -> None:
        while not done.wait(_LOOK_SECONDS):
            if not progress.goes_on():
                _end_without_ray(f"{reason}, and its processes do nothing", done)

    threading.Thread(target=look, name="start of Ray", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _end_without_ray(reason: str, stop: threading.Event) -> None:
    """End the process at once: what waits for Ray would wait for ever. Whoever started it starts it again."""
    if stop.is_set():
        return  # Ray is being shut down
    print(f"loopwright: {reason}, so that this controller ends; it can be started again", file=sys.stderr, flush=True)
    os._exit(ExitStatus.RAY_LOST)

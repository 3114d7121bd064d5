"""A deployment under the scheduler: controllers, one database, machines, users, and faults at any step.

Real are the controllers, the loops of jobs, the tuning loop, the ledger and the database. Simulated are the machines,
the search, and whatever lies between a process and the database.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy.orm import Session

from db import Database
from db.engine import columns
from db.engine.changes import Topic
from db.engine.connections import Sessions
from db.errors import DatabaseAway
from db.inputs import NewJob, WorkerReport
from db.views import JobView
from loopwright.codegen.kinds import FINISHED, FailureKind, JobState, Lane, Origin, SandboxLevel, Stage
from service import outage
from service.controller import controller, device_turns, housekeeping, job_runner, loops
from service.controller.controller import Controller
from service.controller.device_turns import DeviceTurns
from service.controller.job_runner import JobRunner
from service.controller.loops import Loops
from service.settings import Settings
from tests.simulation.scheduler import (
    EPOCH,
    Process,
    Scheduler,
    SimulatedThreading,
    SimulatedTime,
    in_place_of,
)
from tests.support.idle_loops import NoSearches, OneNode
from tests.support.played_fleet import MACHINE
from tuner import tune
from tuner.budget import Budget
from tuner.errors import RaceFailed
from tuner.ports import Meanwhile, MeasureRequest, Raced, RaceRequest, RaceResult, one_by_one
from tuner.search.request import TuneRequest
from tuner.types import (
    Failure,
    MeasureCandidate,
    Measured,
    Outcome,
    Span,
    TaskSpec,
    TensorInfo,
    Trial,
    Workload,
)
from workers.messages import ModelProgram, ModelTimes
from workers.ray import actor_pool, sharing
from workers.ray.actor_pool import ActorPool
from workers.ray.cluster import Offer
from workers.ray.crew import Crew

LEASE_SECONDS = 8.0
"""As on PostgreSQL: several machines have controllers."""
_FAULTY_STEPS = 200
"""Among so many first transactions, faults are drawn: most runs have some hundred."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scenario:
    """What a seed draws: jobs, and what happens at which transactions, counted over all processes."""

    jobs: tuple[tuple[str, ...], ...]
    """The workloads of each job."""
    trials: int
    """Of each job."""
    cancelled: int | None
    """The job that its user cancels, if any."""
    faults: dict[int, str]
    priorities: tuple[int, ...] = ()
    """Of the jobs; 0 for those that are not named."""
    pauses: tuple[float, ...] = ()
    """Seconds before each job is submitted; some draw of a second for those that are not named."""
    budgets: tuple[int, ...] = ()
    """Trials of the jobs; ``trials`` for those that are not named."""

    def budget(self, number: int) -> int:
        return self.budgets[number] if number < len(self.budgets) else self.trials

    @staticmethod
    def of(draw: random.Random) -> Scenario:
        jobs = tuple(tuple(draw.sample("abc", draw.choice((1, 1, 2)))) for _ in range(draw.choice((1, 2, 2, 3))))
        faults = {draw.randrange(_FAULTY_STEPS): draw.choice(FAULTS) for _ in range(draw.randrange(5))}
        return Scenario(jobs, draw.randint(2, 4), draw.choice((None, None, 0)), faults)


FAULTS = ("crash before", "crash after", "refused", "answer lost", "outage", "stop", "sleep", "clock jump")


class World:
    """One run of one seed on an empty ``database`` at the newest revision, whose clock is from now on the run's."""

    def __init__(
        self,
        seed: int,
        database: Database,
        controllers: int = 2,
        *,
        scenario: Scenario | None = None,
        devices: int = 1,
        places: int = 2,
    ) -> None:
        """``scenario`` None: what the seed draws. Each controller has so many ``places``."""
        self.scheduler = Scheduler(seed)
        self.scenario = scenario or Scenario.of(self.scheduler.draw)
        self.machines = Machines(self.scheduler)
        self._node = OneNode(*[MACHINE] * devices)
        self._places = places
        self._time, self._threading = SimulatedTime(self.scheduler), SimulatedThreading(self.scheduler)
        self.jobs: list[JobView] = []
        self.outcomes: Counter[str] = Counter()
        """Outcomes that machines gave, by trial."""
        self.faults: Counter[str] = Counter()
        self.transactions = 0
        self._ended = False
        self.away_until = 0.0
        self.clock_ahead = 0.0
        """Seconds that the database's clock has jumped."""
        self._file = database
        database._open(Sessions(database._engine, self.clock))
        self._controllers = controllers

    def clock(self) -> datetime:
        return datetime.fromtimestamp(EPOCH, UTC) + timedelta(seconds=self.scheduler.now + self.clock_ahead)

    @property
    def database(self) -> Database:
        """The database itself: asked from outside, nothing happens to what it answers."""
        return self._file

    def run(self, seconds: float = 1800.0, *, awaited: int | None = None) -> None:
        """Let all jobs end, or the ``awaited`` one. Raises Stuck if they do not."""
        self._awaited = awaited
        with self._simulated():
            self.scheduler.spawn(Process("users"), self._submit)
            for number in range(self._controllers):
                self._start(f"controller {number}")
            self.scheduler.run(lambda: self._ended, seconds)
            while self._file.tallies.add_up():
                pass

    def _submit(self) -> None:
        for number, workloads in enumerate(self.scenario.jobs):
            pauses, priorities = self.scenario.pauses, self.scenario.priorities
            self.scheduler.pause(pauses[number] if number < len(pauses) else self.scheduler.draw.random())
            new = NewJob(
                f"job {number}",
                "{}",
                MACHINE,
                Budget(self.scenario.budget(number)),
                seed=number,
                priority=priorities[number] if number < len(priorities) else 0,
            )
            self.jobs.append(self._file.jobs.create(new, [TaskSpec(_workload(name), 1) for name in workloads], "0.27"))
        if self.scenario.cancelled is not None:
            self.scheduler.pause(3 * self.scheduler.draw.random())
            self._file.jobs.request_cancel(self.jobs[self.scenario.cancelled].id)
        while self._are_at_work():
            self.scheduler.pause(1.0)
        self._ended = True

    def _are_at_work(self) -> bool:
        if self._awaited is not None:
            return self._file.jobs.get(self.jobs[self._awaited].id).state not in FINISHED
        return bool(self._file.jobs.page(states=(JobState.QUEUED, JobState.RUNNING)).items)

    def _start(self, name: str) -> None:
        process = Process(name)
        self.scheduler.spawn(process, lambda: self._control(process))

    def _control(self, process: Process) -> None:
        """What `service.controller.controller.main` does, without Ray."""
        database = _SimulatedDatabase(self, process)
        settings = Settings(data_dir=Path(process.name), recheck_days=0)
        controller._expire_own_leases(database, settings)
        shared = sharing.Sharing(self._time.monotonic)
        places = Loops(lambda: _Runner(database, shared, self), self._places)
        work = Controller(settings, database, self._node, places)
        work._watch = _NoWatch(database)  # type: ignore[assignment]
        work._news = SimpleNamespace(there_is=lambda: self.scheduler.draw.random() < 0.1, close=lambda: None)  # type: ignore[assignment]
        stop: Any = self._threading.Event()
        with DeviceTurns(database, settings.owner, shared, work.offers).taken(stop):
            work.run(stop)

    @contextlib.contextmanager
    def reaches(self, process: Process) -> Iterator[None]:
        """A transaction of a process, before and after which something may happen."""
        draw = self.scheduler.draw
        self.scheduler.pause(draw.choice((0.0, 0.0, 0.001, 0.01)))
        number, self.transactions = self.transactions, self.transactions + 1
        fault = self.scenario.faults.get(number)
        if fault is not None:
            self._note(f"{fault} of {process.name}")
        match fault:
            case "crash before":
                self._crash(process)
            case "outage":
                self.away_until = self.scheduler.now + draw.choice((0.5, 5.0, 20.0))
            case "stop":
                process.stopped_until = self.scheduler.now + draw.choice((3.0, 10.0, 60.0))
                self.scheduler.pause(0.0)
            case "sleep":
                seconds = draw.choice((3.0, 10.0, 200.0))
                process.stopped_until, process.slept = self.scheduler.now + seconds, process.slept + seconds
                self.scheduler.pause(0.0)
            case "clock jump":
                self.clock_ahead += draw.choice((-30.0, 5.0, 30.0))
        if fault == "refused" or self.scheduler.now < self.away_until:
            raise DatabaseAway("simulated: refused")
        yield
        if fault == "crash after":
            self._crash(process)
        if fault == "answer lost":
            raise DatabaseAway("simulated: the answer was lost")

    def _crash(self, process: Process) -> None:
        """Kill a process; its supervisor starts it again after some seconds."""
        name, pause = process.name, self.scheduler.draw.choice((1.0, 30.0))

        def start() -> None:
            self.scheduler.pause(pause)
            self._start(name)

        self.scheduler.spawn(Process("supervisor"), start)
        self.scheduler.kill(process)

    def _note(self, what: str) -> None:
        self.faults[what.partition(" of ")[0]] += 1
        self.scheduler.history.append(f"{self.scheduler.now:8.3f} s, transaction {self.transactions}: {what}")

    @contextlib.contextmanager
    def _simulated(self) -> Iterator[None]:
        draw = self.scheduler.draw
        timed = (controller, job_runner, loops, outage, sharing, tune)
        threaded = (controller, device_turns, job_runner, loops, outage, sharing, housekeeping)
        drawn = SimpleNamespace(token_hex=lambda size: draw.randbytes(size).hex())
        with in_place_of(
            {
                **{(module, "time"): self._time for module in timed},
                **{(module, "threading"): self._threading for module in threaded},
                (columns, "secrets"): drawn,
                (device_turns, "elapsed"): lambda: self.scheduler.now,
                (actor_pool, "living"): lambda names: {name: name for name in names},
                (housekeeping, "random"): SimpleNamespace(Random=lambda: draw),
                (controller, "Deliverer"): _NoDeliverer,
            }
        ):
            yield


class _NoDeliverer:
    """No webhooks."""

    def __init__(self, database: Database) -> None:
        pass

    def run(self, stop: Any) -> None:
        stop.wait()


class _NoWatch:
    """All workers are well, and seen by whoever looks."""

    drained: frozenset[str] = frozenset()

    def __init__(self, database: Database) -> None:
        self._db = database

    def beat(self, offers: Sequence[Offer]) -> set[str]:
        reports = [
            WorkerReport(offer.id, offer.host, offer.device, offer.device_class, 1, offer.sandbox) for offer in offers
        ]
        self._db.workers.register(*reports)
        return set()

    def is_silent(self, offer: Any) -> bool:
        return False


class _SimulatedSessions(Sessions):
    """The sessions of a process, between which and the database something may happen."""

    def __init__(self, world: World, process: Process) -> None:
        vars(self).update(vars(world.database._sessions))
        self._world = world
        self._process = process

    @contextlib.contextmanager
    def read(self, *, one_snapshot: bool = True) -> Iterator[Session]:
        with self._world.reaches(self._process), super().read(one_snapshot=one_snapshot) as session:
            yield session

    @contextlib.contextmanager
    def write(self, topic: Topic = Topic.OTHER) -> Iterator[Session]:
        with self._world.reaches(self._process), super().write(topic) as session:
            yield session


class _SimulatedDatabase(Database):
    """The database, as a process reaches it."""

    def __init__(self, world: World, process: Process) -> None:
        self._engine = world.database._engine
        self._open(_SimulatedSessions(world, process))

    @property
    def lease_seconds(self) -> float:
        return LEASE_SECONDS


class _Runner(JobRunner):
    def __init__(self, database: Database, shared: sharing.Sharing, world: World) -> None:
        super().__init__(database, NoSearches(), shared)
        self._world = world

    def _search(self, request: TuneRequest) -> Any:
        return _Search(self._world)

    def _fleet(self, job: JobView, crew: Callable[[], Crew]) -> Any:
        return _Fleet(self._world, self._share, crew().measurers)

    def _train_base(self, device_class_id: str) -> None:
        """Nothing is learned."""


class _Search:
    """See `tuner.ports.Search`. Its candidates are numbers."""

    def __init__(self, world: World) -> None:
        self._pause = world.scheduler.pause
        self._known: dict[int, set[str | None]] = {}

    def close(self) -> None:
        """Nothing is open."""

    def read(self, task: int, spec: TaskSpec, meanwhile: Meanwhile) -> tuple[bool, ...]:
        meanwhile()
        return (False, True)

    def choose(self, task: int, meanwhile: Meanwhile) -> MeasureCandidate | None:
        self._pause(0.1)
        meanwhile()
        return MeasureCandidate("[0]", Origin.SEED)

    def open(self, task: int, history: Sequence[Trial], meanwhile: Meanwhile) -> bool:
        self._known[task] = {trial.candidate.trace_json for trial in history}
        return True

    def propose(self, task: int, count: int, meanwhile: Meanwhile) -> list[MeasureCandidate]:
        self._pause(0.1)
        meanwhile()
        fresh = (f"[{number}]" for number in itertools.count() if f"[{number}]" not in self._known[task])
        traces = list(itertools.islice(fresh, count))
        self._known[task].update(traces)
        return [MeasureCandidate(trace, Origin.RANDOM, 0.5) for trace in traces]

    def observe(self, task: int, candidate: MeasureCandidate, outcome: Outcome) -> None:
        """Nothing is learned."""


class Machines:
    """Devices that work on one call at a time, in the order in which they get them."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._free_at: dict[str, float] = {}
        self._last: dict[str, Process] = {}
        self.used = 0.0
        """Seconds of all devices together."""
        self.overlaps: list[str] = []
        """Calls that came while the device worked for another controller that is alive."""

    def call(self, device: str, seconds: float) -> float:
        """Return when a call ends that begins now."""
        now, process = self._scheduler.now, self._scheduler.process
        begins = max(now, self._free_at.get(device, 0.0))
        last = self._last.get(device, process)
        if begins > now and last is not process and last.alive:
            self.overlaps.append(f"{now:8.3f} s, {device}: {process.name} called it while it worked for {last.name}")
        self._free_at[device], self._last[device] = begins + seconds, process
        self.used += seconds
        return begins + seconds


@dataclasses.dataclass(frozen=True, slots=True)
class _Call:
    measurer: str
    request: MeasureRequest
    ends: float


class _Fleet:
    """See `tuner.ports.Fleet`. Programs crash and processes are killed as the seed says.

    Real are the pool of actors and what shares them. Actors are their names.
    """

    def __init__(self, world: World, share: sharing.Share, measurers: Mapping[str, str]) -> None:
        self._world = world
        self._share = share
        self._workers = measurers
        self._pool = ActorPool(dict.fromkeys(measurers, 1), share, lambda: None)
        self._waiting: deque[MeasureRequest] = deque()
        self._calls: list[_Call] = []

    @property
    def slots(self) -> int:
        return 2 * len(self._pool)

    def submit(self, request: MeasureRequest) -> None:
        self._waiting.append(request)

    def collect(self, timeout: float) -> list[tuple[str, Outcome]]:
        scheduler = self._world.scheduler
        until = scheduler.now + timeout
        while True:
            self._dispatch()
            ended = [call for call in self._calls if call.ends <= scheduler.now]
            if ended or scheduler.now >= until or not (self._waiting or self._calls):
                break
            scheduler.pause(min(until - scheduler.now, scheduler.draw.choice((0.02, 0.05))))
        for call in ended:
            self._calls.remove(call)
            self._pool.give_back(call.measurer)
            self._share.trials -= 1
        return [(call.request.key, self._outcome(call)) for call in ended]

    def _dispatch(self) -> None:
        draw = self._world.scheduler.draw
        while self._waiting and (measurer := self._pool.take_if_below(1, 1)) is not None:
            ends = self._world.machines.call(measurer, draw.choice((0.05, 0.1, 0.2)))
            self._calls.append(_Call(measurer, self._waiting.popleft(), ends))
        self._share.awaits(self._pool.names if self._waiting else ())

    def _outcome(self, call: _Call) -> Outcome:
        draw, request, worker = self._world.scheduler.draw, call.request, self._workers[call.measurer]
        ends = EPOCH + call.ends
        self._world.outcomes[request.key] += 1
        spans = (Span(Lane.MEASURE, worker, ends - 0.05, ends),)
        if request.trace_json is not None and draw.random() < 0.1:
            kind = draw.choice((FailureKind.CRASH, FailureKind.KILLED))
            return Failure(Stage.RUN, kind, "simulated", worker, spans)
        return Measured((_latency(request.trace_json),) * 3, worker, spans, SandboxLevel.LANDLOCK)

    def forward(self) -> None:
        self._dispatch()

    def prepare(self, module_json: str) -> None:
        """Nothing is built."""

    def abandon(self) -> None:
        self._waiting.clear()
        for call in self._calls:
            self._pool.give_back(call.measurer)
        self._calls.clear()
        self._share.awaits(())

    def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        measurer = self._pool.await_one(meanwhile)
        ends = self._world.machines.call(measurer, 0.9)
        try:
            while self._world.scheduler.now < ends:
                self._world.scheduler.pause(0.3)
                meanwhile()
        finally:
            self._pool.give_back(measurer)
        contenders = {key: Raced((_latency(trace),) * 3, 0.0, 0.0) for key, trace in request.contenders.items()}
        baseline = Raced((_latency(None),) * 3, 0.0, 0.0)
        worker = self._workers[measurer]
        return RaceResult(baseline, dict(contenders), sandbox=SandboxLevel.LANDLOCK, system="simulated", worker=worker)

    def race_all(self, requests: Sequence[RaceRequest], meanwhile: Meanwhile) -> list[RaceResult | RaceFailed]:
        return one_by_one(self.race, requests, meanwhile)

    def time_model(self, model: ModelProgram, meanwhile: Meanwhile) -> ModelTimes:
        meanwhile()
        return ModelTimes((1e-3,), None)


def _latency(trace: str | None) -> float:
    return 1e-3 if trace is None else 1e-4 + int(hashlib.sha256(trace.encode()).hexdigest()[:4], 16) * 1e-8


def _workload(name: str) -> Workload:
    args = (TensorInfo((64, 64), "float32"), TensorInfo((64, 64), "float32"))
    return Workload(name, name, name, "{}", "", args)

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
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy.orm import Session

from db import Database
from db.engine import columns
from db.engine.connections import Sessions
from db.errors import DatabaseAway
from db.inputs import NewJob
from db.views import JobView
from loopwright.codegen.kinds import FailureKind, JobState, Lane, Origin, SandboxLevel, Stage
from service import outage
from service.controller import controller, housekeeping, job_runner, loops
from service.controller.controller import Controller
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
from workers.ray import sharing
from workers.ray.crew import Crew

LEASE_SECONDS = 8.0
"""As on PostgreSQL: several machines have controllers."""
_WORKER = "host/0"
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

    @staticmethod
    def of(draw: random.Random) -> Scenario:
        jobs = tuple(tuple(draw.sample("abc", draw.choice((1, 1, 2)))) for _ in range(draw.choice((1, 2, 2, 3))))
        faults = {draw.randrange(_FAULTY_STEPS): draw.choice(FAULTS) for _ in range(draw.randrange(5))}
        return Scenario(jobs, draw.randint(2, 4), draw.choice((None, None, 0)), faults)


FAULTS = ("crash before", "crash after", "refused", "answer lost", "outage", "stop", "sleep", "clock jump")


class World:
    """One run of one seed on an empty ``database`` at the newest revision, whose clock is from now on the run's."""

    def __init__(self, seed: int, database: Database, controllers: int = 2) -> None:
        self.scheduler = Scheduler(seed)
        self.scenario = Scenario.of(self.scheduler.draw)
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

    def run(self, seconds: float = 1800.0) -> None:
        """Let all jobs end. Raises Stuck if they do not."""
        with self._simulated():
            self.scheduler.spawn(Process("users"), self._submit)
            for number in range(self._controllers):
                self._start(f"controller {number}")
            self.scheduler.run(lambda: self._ended, seconds)
            while self._file.tallies.add_up():
                pass

    def _submit(self) -> None:
        for number, workloads in enumerate(self.scenario.jobs):
            self.scheduler.pause(self.scheduler.draw.random())
            new = NewJob(f"job {number}", "{}", MACHINE, Budget(self.scenario.trials), seed=number)
            self.jobs.append(self._file.jobs.create(new, [TaskSpec(_workload(name), 1) for name in workloads], "0.27"))
        if self.scenario.cancelled is not None:
            self.scheduler.pause(3 * self.scheduler.draw.random())
            self._file.jobs.request_cancel(self.jobs[self.scenario.cancelled].id)
        while self._file.jobs.page(states=(JobState.QUEUED, JobState.RUNNING)).items:
            self.scheduler.pause(1.0)
        self._ended = True

    def _start(self, name: str) -> None:
        process = Process(name)
        self.scheduler.spawn(process, lambda: self._control(process))

    def _control(self, process: Process) -> None:
        """What `service.controller.controller.main` does, without Ray."""
        database = _SimulatedDatabase(self, process)
        settings = Settings(data_dir=Path(process.name), recheck_days=0)
        controller._expire_own_leases(database, settings)
        shared = sharing.Sharing(self._time.monotonic)
        places = Loops(lambda: _Runner(database, shared, self), 2)
        work = Controller(settings, database, OneNode(), places)
        work._watch = _NoWatch()  # type: ignore[assignment]
        work._news = SimpleNamespace(there_is=lambda: self.scheduler.draw.random() < 0.1, close=lambda: None)  # type: ignore[assignment]
        work.run(self._threading.Event())  # type: ignore[arg-type]

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
        threaded = (controller, job_runner, loops, outage, sharing, housekeeping)
        drawn = SimpleNamespace(token_hex=lambda size: draw.randbytes(size).hex())
        with in_place_of(
            {
                **{(module, "time"): self._time for module in timed},
                **{(module, "threading"): self._threading for module in threaded},
                (columns, "secrets"): drawn,
                (housekeeping, "random"): draw,
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
    """All workers are well."""

    drained: frozenset[str] = frozenset()

    def beat(self, offers: Sequence[Any]) -> set[str]:
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
    def read(self) -> Iterator[Session]:
        with self._world.reaches(self._process), super().read() as session:
            yield session

    @contextlib.contextmanager
    def write(self) -> Iterator[Session]:
        with self._world.reaches(self._process), super().write() as session:
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
        return _Fleet(self._world)

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


class _Fleet:
    """See `tuner.ports.Fleet`. Programs crash and processes are killed as the seed says."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: deque[MeasureRequest] = deque()

    @property
    def slots(self) -> int:
        return 2

    def submit(self, request: MeasureRequest) -> None:
        self._waiting.append(request)

    def collect(self, timeout: float) -> list[tuple[str, Outcome]]:
        scheduler = self._world.scheduler
        scheduler.pause(scheduler.draw.choice((0.05, 0.2, timeout)))
        count = scheduler.draw.randint(0, len(self._waiting))
        return [(request.key, self._outcome(request)) for request in (self._waiting.popleft() for _ in range(count))]

    def _outcome(self, request: MeasureRequest) -> Outcome:
        draw, now = self._world.scheduler.draw, EPOCH + self._world.scheduler.now
        self._world.outcomes[request.key] += 1
        spans = (Span(Lane.MEASURE, _WORKER, now - 0.25, now),)
        if request.trace_json is not None and draw.random() < 0.1:
            kind = draw.choice((FailureKind.CRASH, FailureKind.KILLED))
            return Failure(Stage.RUN, kind, "simulated", _WORKER, spans)
        return Measured((_latency(request.trace_json),) * 3, _WORKER, spans, SandboxLevel.LANDLOCK)

    def forward(self) -> None:
        """Nothing is built."""

    def prepare(self, module_json: str) -> None:
        """Nothing is built."""

    def abandon(self) -> None:
        self._waiting.clear()

    def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        for _ in range(3):
            self._world.scheduler.pause(0.3)
            meanwhile()
        contenders = {key: Raced((_latency(trace),) * 3, 0.0, 0.0) for key, trace in request.contenders.items()}
        baseline = Raced((_latency(None),) * 3, 0.0, 0.0)
        return RaceResult(baseline, dict(contenders), sandbox=SandboxLevel.LANDLOCK, system="simulated")

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

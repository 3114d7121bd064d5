"""A controller with simulated nodes, searches and measurers: all else is that of the service.

.venv/bin/python -m benchmarks.controllers.process URL NAME DEVICES SECONDS

It answers each line of its standard input with its figures since its start, as JSON. A line that is a number is first
taken as the number of devices from now on.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.controllers.made_up import MACHINE
from db import Database
from db.views import JobView
from loopwright.codegen.kinds import Lane, Origin, SandboxLevel
from service.controller.controller import Controller
from service.controller.device_turns import DeviceTurns
from service.controller.job_runner import JobRunner
from service.controller.loops import Loops
from service.settings import Settings
from tests.support.idle_loops import NoSearches
from tuner.errors import RaceFailed
from tuner.ports import Meanwhile, MeasureRequest, Raced, RaceRequest, RaceResult, one_by_one
from tuner.types import Activity, MeasureCandidate, Measured, Outcome, Span, TaskSpec, Trial
from workers.messages import ModelProgram, ModelTimes
from workers.ray import actor_pool
from workers.ray.actor_pool import ActorPool
from workers.ray.cluster import Cluster, Offer
from workers.ray.crew import Crew
from workers.ray.sharing import Share, Sharing
from workers.walls.levels import Level, Policy

_MOST_IN_FLIGHT = 64
"""Candidates of a job."""
_POLL_SECONDS = 0.05


class Figures:
    """Seconds that calls took, by name, and how many trials and device seconds there were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[str, list[float]] = defaultdict(list)
        self.trials = 0
        self.device_seconds = 0.0

    def time(self, owner: Any, method: str, name: str) -> None:
        """Time each call of a method of an object from now on."""
        function: Callable[..., Any] = getattr(owner, method)

        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                with self._lock:
                    self._calls[name].append(time.perf_counter() - started)

        setattr(owner, method, timed)

    def count(self, seconds: float) -> None:
        with self._lock:
            self.trials += 1
            self.device_seconds += seconds

    def drained(self) -> dict[str, Any]:
        """Return what was counted since the last call."""
        with self._lock:
            found = {"trials": self.trials, "device_seconds": self.device_seconds, "calls": dict(self._calls)}
            self._calls, self.trials, self.device_seconds = defaultdict(list), 0, 0.0
        return {**found, "cpu": time.process_time()}


class SimulatedCluster(Cluster):
    """``devices`` nodes with a device each, which answer at once."""

    def __init__(self, devices: int) -> None:
        super().__init__(Policy.OFF)
        self.devices = devices

    def reconcile(self, timeout: float = 0.0) -> list[Offer]:
        return [
            Offer(
                id=f"host-{number:04}/cpu",
                host=f"host-{number:04}",
                device="cpu",
                device_class=MACHINE,
                sandbox=Level.NONE,
                system="simulated",
                measurer=f"measurer-{number:04}-cpu",
                builders={f"builder-{number:04}": 2},
                host_target=MACHINE.target_json,
            )
            for number in range(self.devices)
        ]

    def activity(self, timeout: float) -> dict[str, Activity]:
        return {offer.id: Activity() for offer in self.reconcile()}

    def present(self, offers: Iterable[Offer]) -> list[Offer]:
        return list(offers)

    def measurer(self, offer: Offer) -> None:
        """Nothing times a reference kernel."""


class _Search:
    """See `tuner.ports.Search`. Its candidates are numbers."""

    def __init__(self) -> None:
        self._known: dict[int, set[str | None]] = {}

    def close(self) -> None:
        """Nothing is open."""

    def read(self, task: int, spec: TaskSpec, meanwhile: Meanwhile) -> tuple[bool, ...]:
        return (False, True)

    def open(self, task: int, history: Sequence[Trial], meanwhile: Meanwhile) -> bool:
        self._known[task] = {trial.candidate.trace_json for trial in history}
        return True

    def propose(self, task: int, count: int, meanwhile: Meanwhile) -> list[MeasureCandidate]:
        fresh = (trace for number in itertools.count() if (trace := f"[{number}]") not in self._known[task])
        traces = list(itertools.islice(fresh, count))
        self._known[task].update(traces)
        return [MeasureCandidate(trace, Origin.RANDOM, 0.5) for trace in traces]

    def observe(self, task: int, candidate: MeasureCandidate, outcome: Outcome) -> None:
        """Nothing is learned."""


class _Fleet:
    """See `tuner.ports.Fleet`. A measurement takes a device for some seconds, and no processor time."""

    def __init__(self, share: Share, crew: Crew, seconds: float, figures: Figures) -> None:
        self._share = share
        self._workers: Mapping[str, str] = crew.measurers
        self._pool = ActorPool(dict.fromkeys(crew.measurers, 1), share, lambda: None)
        self._seconds = seconds
        self._figures = figures
        self._waiting: deque[MeasureRequest] = deque()
        self._calls: dict[str, tuple[str, float]] = {}
        """The measurer of each key, and when it ends."""

    slots = _MOST_IN_FLIGHT

    def submit(self, request: MeasureRequest) -> None:
        self._waiting.append(request)

    def collect(self, timeout: float) -> list[tuple[str, Outcome]]:
        until = time.monotonic() + timeout
        while True:
            self.forward()
            now = time.monotonic()
            ended = [key for key, (_, ends) in self._calls.items() if ends <= now]
            if ended or now >= until or not (self._waiting or self._calls):
                return [(key, self._outcome(key)) for key in ended]
            time.sleep(min(_POLL_SECONDS, until - now))

    def forward(self) -> None:
        while self._waiting and (measurer := self._pool.take_if_below(1, 1)) is not None:
            self._calls[self._waiting.popleft().key] = measurer, time.monotonic() + self._seconds
        self._share.awaits(self._pool.names if self._waiting else ())

    def _outcome(self, key: str) -> Outcome:
        measurer, _ = self._calls.pop(key)
        self._pool.give_back(measurer)
        self._share.trials -= 1
        self._figures.count(self._seconds)
        now = time.time()
        span = Span(Lane.MEASURE, self._workers[measurer], now - self._seconds, now)
        return Measured(_samples(key), self._workers[measurer], (span,), SandboxLevel.LANDLOCK)

    def prepare(self, module_json: str) -> None:
        """Nothing is built."""

    def abandon(self) -> None:
        self._waiting.clear()
        for measurer, _ in self._calls.values():
            self._pool.give_back(measurer)
        self._calls.clear()
        self._share.awaits(())

    def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        measurer = self._pool.await_one(meanwhile)
        try:
            time.sleep(self._seconds)
            meanwhile()
        finally:
            self._pool.give_back(measurer)
        contenders = {key: Raced(_samples(str(trace)), 0.0, 0.0) for key, trace in request.contenders.items()}
        baseline = Raced((2e-3,) * 3, 0.0, 0.0)
        return RaceResult(baseline, dict(contenders), sandbox=SandboxLevel.LANDLOCK, system="simulated")

    def race_all(self, requests: Sequence[RaceRequest], meanwhile: Meanwhile) -> list[RaceResult | RaceFailed]:
        return one_by_one(self.race, requests, meanwhile)

    def time_model(self, model: ModelProgram, meanwhile: Meanwhile) -> ModelTimes:
        return ModelTimes((1e-3,), None)


def _samples(text: str) -> tuple[float, ...]:
    drawn = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32
    return tuple((1e-4 + 1e-3 * drawn) * noise for noise in (1.0, 1.01, 0.99))


class _Runner(JobRunner):
    def __init__(self, database: Database, sharing: Sharing, seconds: float, figures: Figures) -> None:
        super().__init__(database, NoSearches(), sharing)
        self._seconds = seconds
        self._figures = figures

    def _search(self, request: Any) -> Any:
        return _Search()

    def _fleet(self, job: JobView, crew: Callable[[], Crew]) -> Any:
        return _Fleet(self._share, crew(), self._seconds, self._figures)

    def _train_base(self, device_class_id: str) -> None:
        """Nothing is learned."""


def main() -> None:
    url, name, devices, seconds = sys.argv[1:]
    vars(actor_pool)["living"] = lambda names: {name: name for name in names}
    settings = Settings(data_dir=Path(name), database_url=url, recheck_days=0)
    database, figures, sharing = Database(url), Figures(), Sharing()
    figures.time(database.jobs, "claim", "claim")
    figures.time(database.workers, "register", "heartbeat: reports")
    figures.time(database.trials, "finish", "finish a trial")
    figures.time(database.trials, "propose", "propose candidates")
    cluster = SimulatedCluster(int(devices))
    loops = Loops(lambda: _Runner(database, sharing, float(seconds), figures), settings.places)
    controller = Controller(settings, database, cluster, loops)
    figures.time(controller._watch, "beat", "heartbeat")
    turns = DeviceTurns(database, settings.owner, sharing, controller.offers)
    figures.time(turns, "turn", "division of the devices")
    stop = threading.Event()

    def answer() -> None:
        for line in sys.stdin:
            if line.strip().isdigit():
                cluster.devices = int(line)
            print(json.dumps(figures.drained()), flush=True)
        stop.set()

    threading.Thread(target=answer, daemon=True).start()
    with turns.taken(stop):
        controller.run(stop)
    database.close()


if __name__ == "__main__":
    main()

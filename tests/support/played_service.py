"""A service whose fleet and searches are played: a real API and a real controller, but no Ray and nothing measured.

Jobs take well under a second. Their best programs are real: they apply, build and compute.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from db import Database
from db.views import JobView, Peaks, RecordDetail
from loopwright.codegen.functions import write_only
from loopwright.codegen.kinds import Lane, Origin, Predictor
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from service.ablations import MOST
from service.controller.controller import Controller
from service.controller.job_runner import JobRunner
from service.controller.loops import Loops
from service.settings import Settings
from tests.support import played_fleet
from tests.support.idle_loops import NoSearches, OneNode
from tests.support.served_api import TOKEN, ServedApi, served
from tests.support.service_client import ServiceClient
from tests.support.waiting import wait_for
from tuner.errors import InvalidSpace, RaceFailed
from tuner.inspection.answers import Variants
from tuner.inspection.variants import variants
from tuner.ports import Meanwhile, MeasureRequest, Raced, RaceRequest, RaceResult, one_by_one
from tuner.search.request import TuneRequest
from tuner.space.builtin import builtin_space
from tuner.space.user import user_space
from tuner.types import (
    Activity,
    Failure,
    LibraryTime,
    MeasureCandidate,
    Measured,
    Outcome,
    Span,
    TaskSpec,
    TensorInfo,
    Trial,
)
from workers.messages import ModelProgram, ModelTimes
from workers.ray.cluster import Offer
from workers.ray.crew import Crew
from workers.ray.sharing import Sharing

BASELINE_SECONDS = 1e-3
"""Of each unscheduled function of up to `_ELEMENTS`. Its candidates take a tenth of it to all of it."""
_ELEMENTS = 2**14
"""Functions whose arguments have more elements take as many times as long."""
_DIFFERENCE = 1e-7
"""Of the results of a candidate, in all respects."""
_DRAWS = 400
"""Drawn programs of a space among which a search proposes those that are in the space."""
Fault = Callable[[MeasureRequest], Failure | None]


class Stage:
    """How the fleet plays: which requests fail, and after how many outcomes of a job the others wait."""

    def __init__(self) -> None:
        self.fault: Fault = lambda request: None
        self.in_slot: str | None = None
        """The trial that waits in the measuring slot, if one does."""
        self.rounds: tuple[float, ...] = (1.0,) * 5
        """Of a contender in a race: its samples as factors of its latency. The baseline has none of this noise."""
        self.library: LibraryTime | None = None
        """What a library takes in each race."""
        self._held_after: int | None = None
        self._changed = threading.Condition()
        self._races, self._models = threading.Event(), threading.Event()
        self._races.set()
        self._models.set()

    @contextlib.contextmanager
    def races_held(self) -> Iterator[None]:
        """Let no race end before the context does."""
        self._races.clear()
        try:
            yield
        finally:
            self._races.set()

    @contextlib.contextmanager
    def models_held(self) -> Iterator[None]:
        """Let the timing of no whole model end before the context does."""
        self._models.clear()
        try:
            yield
        finally:
            self._models.set()

    def await_race(self, meanwhile: Meanwhile) -> None:
        while not self._races.wait(0.05):
            meanwhile()

    def await_model(self, meanwhile: Meanwhile) -> None:
        while not self._models.wait(0.05):
            meanwhile()

    @contextlib.contextmanager
    def held(self, *, after: int) -> Iterator[None]:
        """Let each job have ``after`` outcomes, and no more until the context ends."""
        self._held_after = after
        try:
            yield
        finally:
            with self._changed:
                self._held_after = None
                self._changed.notify_all()

    def may_go_on(self, trial_id: str, outcomes: int, timeout: float) -> bool:
        """Return whether a job that has had so many outcomes may have that of a trial, within ``timeout`` seconds."""
        with self._changed:
            may = self._changed.wait_for(lambda: self._held_after is None or outcomes < self._held_after, timeout)
            self.in_slot = None if may else trial_id
            return may


class PlayedFleet:
    """See `tuner.ports.Fleet`. The latency of a program depends on its trace and on nothing else."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._waiting: deque[MeasureRequest] = deque()
        self._outcomes = 0

    @property
    def slots(self) -> int:
        return 4

    def submit(self, request: MeasureRequest) -> None:
        self._waiting.append(request)

    def collect(self, timeout: float) -> list[tuple[str, Outcome]]:
        if not self._waiting or not self._stage.may_go_on(self._waiting[0].key, self._outcomes, timeout):
            return []
        self._outcomes += 1
        request = self._waiting.popleft()
        return [(request.key, self._stage.fault(request) or _measured(request))]

    def forward(self) -> None:
        """Nothing is built ahead of being measured."""

    def prepare(self, module_json: str) -> None:
        """Nothing is built ahead of being raced."""

    def abandon(self) -> None:
        self._waiting.clear()
        self._stage.in_slot = None

    def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        self._stage.await_race(meanwhile)
        contenders: dict[str, Raced | Failure] = {}
        for key, trace in request.contenders.items():
            asked = MeasureRequest(key, request.module_json, request.args, trace, None)
            latency = _latency(trace, request.args)
            raced = Raced(tuple(latency * factor for factor in self._stage.rounds), _DIFFERENCE, _DIFFERENCE)
            contenders[key] = self._stage.fault(asked) or raced
        rounds = len(self._stage.rounds) if request.yardsticks else 0
        baseline = Raced((_latency(None, request.args),) * rounds, 0.0, 0.0)
        library = self._stage.library
        return RaceResult(
            baseline,
            contenders,
            library=library,
            sandbox=played_fleet.SANDBOX,
            system="played",
            worker=played_fleet.WORKER,
        )

    def race_all(self, requests: Sequence[RaceRequest], meanwhile: Meanwhile) -> list[RaceResult | RaceFailed]:
        return one_by_one(self.race, requests, meanwhile)

    def time_model(self, model: ModelProgram, meanwhile: Meanwhile) -> ModelTimes:
        self._stage.await_model(meanwhile)
        tuned, untuned = (sum(map(_latency, traces)) for traces in (model.traces.values(), (None,) * len(model.traces)))
        return ModelTimes((tuned,) * 5, None, (untuned,) * 5 if model.untuned_build_seconds else ())


def _latency(trace_json: str | None, args: Sequence[TensorInfo] = ()) -> float:
    baseline = BASELINE_SECONDS * max(1.0, sum(math.prod(info.shape) for info in args) / _ELEMENTS)
    if trace_json is None:
        return baseline
    part = int.from_bytes(hashlib.sha256(trace_json.encode()).digest()[:4], "big") / 2**32
    return baseline * (0.1 + 0.9 * part)


def _measured(request: MeasureRequest) -> Measured:
    latency = _latency(request.trace_json, request.args)
    spans = (Span(Lane.BUILD, "host/builder 0", 1.0, 2.0), Span(Lane.MEASURE, played_fleet.WORKER, 2.0, 3.0))
    return Measured(
        tuple(latency * factor for factor in (0.99, 1.0, 1.01)), played_fleet.WORKER, spans, played_fleet.SANDBOX
    )


class PlayedSearch:
    """See `tuner.ports.Search`. Proposes programs of the space in the order in which they are drawn."""

    def __init__(self, request: TuneRequest) -> None:
        self._request = request
        self._specs: dict[int, TaskSpec] = {}
        self._programs: dict[int, Iterator[str]] = {}

    def close(self) -> None:
        """Nothing is open."""

    def read(self, task: int, spec: TaskSpec, meanwhile: Meanwhile) -> tuple[bool, ...]:
        self._specs[task] = spec
        return write_only(module_from_json(spec.workload.module_json)["main"])

    def choose(self, task: int, meanwhile: Meanwhile) -> MeasureCandidate | None:
        return next(iter(self.propose(task, 1, meanwhile)), None) if self.open(task, (), meanwhile) else None

    def open(self, task: int, history: Sequence[Trial], meanwhile: Meanwhile) -> bool:
        module_json = self._specs[task].workload.module_json
        try:
            if self._request.space is None:
                programs = _Programs.of_builtin_space(module_json, self._request.target_json)
            else:
                target = target_from(self._request.target_json)
                programs = _Programs(user_space(module_from_json(module_json), target, self._request.space, 1))
        except InvalidSpace:
            return False
        known = {trial.candidate.trace_json for trial in history}
        self._programs[task] = (trace for trace in programs if trace not in known)
        return True

    def propose(self, task: int, count: int, meanwhile: Meanwhile) -> list[MeasureCandidate]:
        traces = itertools.islice(self._programs[task], count)
        return [
            MeasureCandidate(trace, Origin.RANDOM, -_latency(trace), predicted_by=Predictor.RANKING) for trace in traces
        ]

    def observe(self, task: int, candidate: MeasureCandidate, outcome: Outcome) -> None:
        """Nothing is learned."""


class _Programs:
    """The distinct programs of a space, drawn when they are needed and kept. Several threads may iterate."""

    def __init__(self, space: Any) -> None:
        drawn = (space.replay(space.traces[n % len(space.traces)], n) for n in range(1, _DRAWS))
        self._more = (trace_to_json(schedule.trace) for schedule in drawn if schedule is not None)
        self._traces: list[str] = []
        self._lock = threading.Lock()

    @staticmethod
    @cache
    def of_builtin_space(module_json: str, target_json: str) -> _Programs:
        return _Programs(builtin_space(module_from_json(module_json), target_from(target_json), 1))

    def __iter__(self) -> Iterator[str]:
        for number in itertools.count():
            with self._lock:
                while number >= len(self._traces):
                    trace = next(self._more, None)
                    if trace is None:
                        return
                    if trace not in self._traces:
                        self._traces.append(trace)
            yield self._traces[number]


class PlayedRunner(JobRunner):
    """Runs a job with a played search on the played fleet."""

    def __init__(self, database: Database, sharing: Sharing, stage: Stage) -> None:
        super().__init__(database, NoSearches(), sharing)
        self._stage = stage

    def _search(self, request: TuneRequest) -> Any:
        return PlayedSearch(request)

    def _fleet(self, job: JobView, crew: Callable[[], Crew]) -> Any:
        return PlayedFleet(self._stage)

    def _variants(self, found: RecordDetail) -> Variants:
        record = found.record
        [neighbours] = variants(found.workload.module_json, record.target_json, record.trace_json or "", MOST)
        return neighbours

    def _train_base(self, device_class_id: str) -> None:
        """Nothing is learned."""


class PlayedCluster(OneNode):
    """One machine, the one of `played_fleet`."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage

    def reconcile(self, timeout: float = 0.0) -> list[Offer]:
        [offer] = super().reconcile(timeout)
        return [replace(offer, id=played_fleet.WORKER, sandbox=played_fleet.SANDBOX)]

    def activity(self, timeout: float) -> dict[str, Activity]:
        trial_id = self._stage.in_slot
        since = None if trial_id is None else datetime.now(UTC)
        return {played_fleet.WORKER: Activity(slot_since=since, slot_trial_id=trial_id)}


class PlayedService(ServiceClient):
    """An API on a real server, and a controller, both in threads of this process. Clients of this machine find it."""

    def __init__(self, api: ServedApi, folder: Path, data_dir: Path, stage: Stage) -> None:
        self.api = api
        self.folder = folder
        self.data_dir = data_dir
        self.stage = stage
        self.url = f"http://127.0.0.1:{api.port}"
        self.http = api.http
        self.port = api.port
        self.database = api.database
        token_file = data_dir / "token"
        token_file.write_text(TOKEN)
        announced = folder / "state" / "loopwright" / "service.json"
        announced.parent.mkdir(parents=True)
        announced.write_text(json.dumps({"url": self.url, "token_file": str(token_file)}))


@contextlib.contextmanager
def played(folder: Path, places: int = 4, **settings: Any) -> Iterator[PlayedService]:
    """Serve until the context ends, with ``settings`` besides the necessary ones."""
    data_dir = folder / "data"
    data_dir.mkdir()
    with served(data_dir, **settings) as api:
        chosen = Settings(data_dir=data_dir, **settings)
        database, sharing, stage = Database(chosen.database), Sharing(), Stage()
        loops = Loops(lambda: PlayedRunner(database, sharing, stage), places)
        stop = threading.Event()
        controller = Controller(chosen, database, PlayedCluster(stage), loops)
        thread = threading.Thread(target=controller.run, args=(stop,), name="played controller")
        thread.start()
        try:
            wait_for("the worker", lambda: database.workers.all(60.0))
            database.devices.put_peaks(
                played_fleet.MACHINE, Peaks("float32", 4e9, 1e10, database.now(), played_fleet.CACHES)
            )
            yield PlayedService(api, folder, data_dir, stage)
        finally:
            stop.set()
            thread.join()
            database.close()

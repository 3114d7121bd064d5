"""The API itself, on SQLite, with real sandboxes; the fleet is played by the tests, which write what it would."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi.testclient import TestClient

from db import Database, migrate
from db.states import AnsweredFrom, JobState
from db.views import Peaks
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import canonical_target, target_from
from service.app import create_app
from service.settings import Settings
from tests.support.programs import product
from tuner.space.builtin import builtin_space
from tuner.types import (
    Certificate,
    DeviceClass,
    Failure,
    FailureKind,
    Lane,
    MeasureCandidate,
    Measured,
    Origin,
    Span,
    Stage,
)

OWNER = "owner's token"
TARGET = canonical_target(target_from({"kind": "llvm", "mcpu": "haswell", "num-cores": 2}))
MACHINE = DeviceClass(TARGET, "GenuineIntel haswell 0001", ("avx2",), 2, 2, "tvm")
WORKER = "host/cpu"
ROUNDS = 5
"""Batches of four trials that the played search proposes."""


@dataclass
class Api:
    """A client that bears the owner's token, and the database behind it."""

    http: TestClient
    database: Database
    headers: dict[str, str] = field(default_factory=lambda: {"Authorization": f"Bearer {OWNER}"})

    def get(self, path: str, **query: Any) -> Any:
        answer = self.http.get(f"/api/v1{path}", params=query, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None, status: int = 200, headers: dict[str, str] | None = None) -> Any:
        answer = self.http.post(f"/api/v1{path}", json=body, headers=self.headers | (headers or {}))
        assert answer.status_code == status, answer.text
        return answer.json()

    def submit(self, script: str, status: int = 202, **fields: Any) -> Any:
        return self.post("/jobs", {"module": {"format": "tvmscript", "data": script}, **fields}, status)

    def play(self, job_id: str) -> None:
        """What a controller and a fleet would do: a baseline, `ROUNDS` of real candidates, a certificate."""
        claimed = self.database.jobs.claim("test", 60)
        assert claimed is not None
        assert claimed.job.id == job_id
        token = claimed.lease_token
        for task in self.database.tasks.of_job(job_id):
            assert self.database.tasks.try_start(task.id, token)
            mod = module_from_json(self.database.workloads.get(task.workload_hash).module_json)
            space = builtin_space(mod, target_from(TARGET), 1)
            schedules = (space.replay(space.traces[0], seed) for seed in range(1, 1000))
            found_traces = (trace_to_json(schedule.trace) for schedule in schedules if schedule is not None)
            traces = iter(dict.fromkeys(itertools.islice(found_traces, 8 * ROUNDS)))
            found = [(MeasureCandidate(None, Origin.BASELINE), 1e-3)]
            self._finish(task.id, token, found, None)
            for number in range(ROUNDS):
                batch = [
                    (MeasureCandidate(next(traces), Origin.RANDOM, -float(place)), 1e-4 * (1 + place + number))
                    for place in range(4)
                ]
                self._finish(task.id, token, batch, Span(Lane.PROPOSE, "search", number, number + 0.5))
                found += batch
            best, latency = min(found, key=lambda each: each[1])
            wrong = Failure(Stage.CERTIFY, FailureKind.WRONG_RESULT, "argument 2 differs by up to 0.5")
            certificate = Certificate(
                best.hash,
                "2 sets",
                1e-3,
                1e-3,
                0.0,
                0.0,
                (latency,) * 5,
                (1e-3,) * 5,
                contenders=3,
                rejected={found[-1][0].hash: wrong},
            )
            stored = self.database.certificates.store(task.id, token, certificate, claimed.job.max_trials)
            self.database.tasks.answer(task.id, token, stored.id, AnsweredFrom.SEARCH)
        assert self.database.jobs.finish(job_id, token, JobState.SUCCEEDED)

    def _finish(
        self, task_id: str, token: str, batch: list[tuple[MeasureCandidate, float]], searched: Span | None
    ) -> None:
        trials = self.database.trials.propose(task_id, token, [candidate for candidate, _ in batch], 0, searched)
        for trial, (_, latency) in zip(trials, batch, strict=True):
            spans = (Span(Lane.BUILD, "host/builder 0", 1.0, 2.0), Span(Lane.MEASURE, WORKER, 2.0, 3.0))
            samples = tuple(latency * factor for factor in (0.99, 1.0, 1.01))
            assert statistics.median(samples) == latency
            assert self.database.trials.finish(trial.id, token, Measured(samples, WORKER, spans))


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("api")
    return Settings(data_dir=folder, token=OWNER, guests=True)


@pytest.fixture(scope="module")
def api(settings: Settings) -> Iterator[Api]:
    migrate.upgrade(settings.database)
    with TestClient(create_app(settings), base_url="http://service") as http:
        database = Database(settings.database)
        database.workers.register(WORKER, host="host", device="cpu", device_class=MACHINE, builders=2)
        yield Api(http, database)
        database.close()


@pytest.fixture(autouse=True)
def _beating(api: Api) -> None:
    """The worker is alive, however long the tests before took."""
    api.database.workers.register(WORKER, host="host", device="cpu", device_class=MACHINE, builders=2)


@pytest.fixture(scope="module")
def job(api: Api) -> dict[str, Any]:
    """A finished job of one product; the machine's peaks are known."""
    api.database.workers.register(WORKER, host="host", device="cpu", device_class=MACHINE, builders=2)
    made = api.submit(product(32), name="a product", budget={"max_trials": 20})
    api.play(made["id"])
    now = api.database.jobs.get(made["id"]).finished_at
    assert now is not None
    api.database.devices.put_peaks(MACHINE, Peaks("float32", 4e9, 1e10, now))
    found: dict[str, Any] = api.get(f"/jobs/{made['id']}")
    return found

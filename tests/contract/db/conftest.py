"""One suite, two databases: every test that asks for `url`, `empty_url` or `world` runs on SQLite and on PostgreSQL.

In the round, only the modules of `ROUND_ON_POSTGRES` run on PostgreSQL.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from db import Database, migrate
from db.inputs import NewJob
from db.views import ClaimedJob, JobView, TaskView
from loopwright.codegen.kinds import AnsweredFrom, FailureKind, JobState, Origin, SandboxLevel, Stage
from tests.support.postgres import EmptiedDatabases, new_database, postgres_server
from tuner.budget import Budget
from tuner.types import (
    Certificate,
    DeviceClass,
    Failure,
    LibraryTime,
    MeasureCandidate,
    Measured,
    TaskSpec,
    TensorInfo,
    Trial,
    Workload,
)

BASELINE = MeasureCandidate(None, Origin.BASELINE)


class Clock:
    """Stands still until it is told to go on, so that no test waits for a lease."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.time = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def forward(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class World:
    """A database with short ways to the states that tests start from."""

    db: Database
    clock: Clock
    device_class: DeviceClass = field(
        default_factory=lambda: DeviceClass('{"kind":"llvm"}', "cpu-1", ("avx2", "fma"), 8, 8, "runtime 1")
    )

    def workload(self, hash: str = "w0") -> Workload:
        """``family-extent``, ``family-extentxextent``, or just a hash."""
        family, _, extents = hash.partition("-")
        args = (TensorInfo((1, *(int(extent) for extent in (extents or "784").split("x"))), "float32"),)
        return Workload(hash, family, f"name_{hash}", "{}", f"# {hash}", args)

    def job(self, *hashes: str, sources: tuple[str, ...] = (), **fields: Any) -> JobView:
        """A queued job with one task a workload, which its model calls at ``sources``."""
        limits = {limit.name: fields.pop(limit.name) for limit in dataclasses.fields(Budget) if limit.name in fields}
        required: dict[str, Any] = {
            "name": "job",
            "module_json": "{}",
            "device_class": self.device_class,
            "budget": Budget(**{"max_trials": 64} | limits),
        }
        new = NewJob(**required | fields)
        tasks = [TaskSpec(self.workload(hash), 2, sources=sources) for hash in hashes or ("w0",)]
        return self.db.jobs.create(new, tasks, "0.27")

    def claim(self, seconds: float = 30) -> ClaimedJob:
        claimed = self.db.jobs.claim("controller", seconds)
        assert claimed is not None
        return claimed

    def task(self, job_id: str, position: int = 0) -> TaskView:
        return self.db.tasks.of_job(job_id)[position]

    def started(self, *hashes: str, **fields: Any) -> tuple[ClaimedJob, TaskView]:
        """A claimed job whose first task is running."""
        job = self.job(*hashes, **fields)
        claimed = self.claim()
        assert claimed.job.id == job.id
        task = self.task(job.id)
        assert self.db.tasks.try_start(task.id, claimed.lease_token)
        return claimed, task

    def propose(self, claimed: ClaimedJob, task: TaskView, *traces: str) -> list[Trial]:
        candidates = [MeasureCandidate(trace, Origin.RANDOM, 0.5) for trace in traces]
        return self.db.trials.propose(task.id, claimed.lease_token, candidates, seed=7)

    def measured(self, *secs: float, hash: str = "w0", budget: int = 64, **fields: Any) -> tuple[list[Trial], str]:
        """A succeeded job: the baseline (1 s), a trial for each of `secs`, and a certificate for the fastest."""
        claimed, task = self.started(hash, **fields)
        token = claimed.lease_token
        traces = [MeasureCandidate(f"[{number}]", Origin.RANDOM) for number in range(len(secs))]
        trials = self.db.trials.propose(task.id, token, [BASELINE, *traces])
        latencies = (1.0, *secs)
        for trial, latency in zip(trials, latencies, strict=True):
            assert self.db.trials.finish(trial.id, token, Measured((latency,), "worker"))
        fastest = min(range(len(trials)), key=lambda index: latencies[index])
        certificate = self.certificate(trials[fastest], latencies[fastest])
        stored = self.db.certificates.store(task.id, token, certificate, budget)
        self.db.tasks.answer(task.id, token, stored.id, AnsweredFrom.SEARCH)
        assert self.db.jobs.finish(claimed.job.id, token, JobState.SUCCEEDED)
        self.clock.forward(1)
        return trials, stored.id

    def certificate(self, trial: Trial, latency: float) -> Certificate:
        rounds = (latency, latency, latency)
        return Certificate(
            trial.candidate.hash,
            "2 sets",
            1e-5,
            1e-6,
            0.0,
            1e-7,
            rounds,
            (1.0, 1.0, 1.0),
            3,
            {"bad": Failure(Stage.CERTIFY, FailureKind.WRONG_RESULT, "wrong", "worker")},
            LibraryTime("NumPy", (0.5, 0.25, 0.75)),
            SandboxLevel.LANDLOCK,
            "Linux 6.1",
        )


ROUND_ON_POSTGRES = {
    *("test_claimed_tasks", "test_db_backup", "test_db_behind", "test_db_fleet", "test_db_jobs", "test_db_kill"),
    *("test_db_migrations", "test_db_outages", "test_db_queue", "test_db_records", "test_db_tallies", "test_db_tasks"),
    *("test_db_device_leases", "test_db_trials", "test_db_usage", "test_db_versions", "test_answers"),
}
"""Modules that the round runs on both databases: leases, claims, paging, upserts and migrations."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the other modules of this folder on PostgreSQL to the whole. pytest gives the items of all folders."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.stem not in ROUND_ON_POSTGRES:
            parameters = item.callspec.params if hasattr(item, "callspec") else {}
            if "postgresql" in parameters.values():
                item.add_marker(pytest.mark.whole)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a server with a database ``template`` at the newest revision."""
    with postgres_server() as server:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE template")
        migrate.upgrade(server.get_uri("template"))
        yield server.get_uri()


@pytest.fixture(scope="session")
def emptied_databases(postgres: str) -> Iterator[EmptiedDatabases]:
    with EmptiedDatabases(postgres) as databases:
        yield databases


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "template.db"
    migrate.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/empty.db"
    else:
        with new_database(request.getfixturevalue("postgres"), "template0") as url:
            yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """A fresh database at the newest revision. Its URL may be that of an earlier test, but its rows are not."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres_url"))
    template: Path = request.getfixturevalue("sqlite_template")
    path = template.with_name("loopwright.db")
    for earlier in template.parent.glob(f"{path.name}*"):
        earlier.unlink()
    shutil.copy(template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def postgres_url(emptied_databases: EmptiedDatabases) -> Iterator[str]:
    """The same, for what only a server can show."""
    with emptied_databases.lend() as url:
        yield url


@pytest.fixture(scope="session")
def opened() -> dict[str, tuple[Database, Clock]]:
    """What tests opened, by URL: to compile the same statements in each test takes longer than to run them."""
    return {}


@pytest.fixture
def world(url: str, opened: dict[str, tuple[Database, Clock]]) -> Iterator[World]:
    if url not in opened:
        clock = Clock()
        opened[url] = Database(url, clock), clock
    db, clock = opened[url]
    clock.reset()
    yield World(db, clock)
    db.close()

"""A cluster of two machines, of which every process dies in turn: jobs live through it.

What is required is that nothing is lost and nothing done twice. How long nothing was measured after each blow is noted,
and bounded by far more than it takes; the end of the output has it as a table.
"""

from __future__ import annotations

import contextlib
import functools
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from db import Database
from loopwright.codegen.kinds import FINISHED
from tests.support import gaps
from tests.support.ledger import check_ledger
from tests.support.machines import MachineCluster, machine_cluster
from tests.support.network_namespaces import what_is_missing
from tests.support.postgres import postgres_server, stopped
from tests.support.processes import is_warm_child
from tests.support.programs import product
from tests.support.service import START_SECONDS, Service
from tests.support.service_client import JOB_SECONDS, stage_of
from tests.support.waiting import wait_for

TRIALS = 320
ROUNDS = 3
OUTAGE_SECONDS = 10.0
MOST_SECONDS = 240.0
"""Without a finished trial after a blow: no bound on speed, but none passes that waits for a person."""


@dataclass(frozen=True, slots=True)
class Scene:
    """``outage`` takes the database away as long as its context lasts."""

    service: Service
    cluster: MachineCluster
    database_url: str
    outage: Callable[[], contextlib.AbstractContextManager[None]]

    def ask(self, path: str) -> Any:
        """Return the answer of the API, or None while there is none, or no database."""
        with contextlib.suppress(httpx.TransportError):
            answer = self.service.http.get(f"/api/v1{path}")
            return answer.json() if answer.status_code == 200 else None
        return None

    def progress(self, job_id: str) -> int:
        """Return the finished trials of a job that is running."""
        job = wait_for("an answer", lambda: self.ask(f"/jobs/{job_id}"))
        assert job["state"] not in FINISHED, f"the job was over too soon for this test: {job}"
        return int(job["progress"]["trials"])

    def await_trials(self, job_id: str) -> None:
        """Return when a job has finished a few more trials."""
        wanted = self.progress(job_id) + 3
        wait_for("more trials", lambda: self.progress(job_id) >= wanted, JOB_SECONDS)

    def await_machines(self) -> None:
        """Return when all machines have been seen from now on."""
        since = datetime.now(UTC)

        def seen() -> bool:
            workers = (self.ask("/workers") or {}).get("items", [])
            fresh = [worker for worker in workers if datetime.fromisoformat(worker["last_seen_at"]) > since]
            return len(fresh) == len(self.cluster.workers)

        wait_for("all machines", seen, START_SECONDS)

    def await_work_of_all(self, job_id: str) -> None:
        """Return when all machines have measured for a job from now on: it takes up those that join."""
        self.await_machines()
        since = datetime.now(UTC)

        def measured() -> bool:
            self.progress(job_id)
            trials = self.service.items(f"/jobs/{job_id}/trials", page_size=50)
            finished = [trial for trial in trials if trial["finished_at"]]
            new = [trial for trial in finished if datetime.fromisoformat(trial["finished_at"]) > since]
            return len({trial["worker"] for trial in new}) == len(self.cluster.workers)

        wait_for("work of all machines", measured, JOB_SECONDS)

    def await_end(self, job_id: str) -> dict[str, Any]:
        """Return the job, once it has ended."""
        job: dict[str, Any] = {}

        def ended() -> dict[str, Any] | None:
            job.update(self.ask(f"/jobs/{job_id}") or {})
            return job if job.get("state") in FINISHED else None

        return wait_for(f"the end of job {job_id}", ended, JOB_SECONDS, progress=lambda: stage_of(job))

    def of_workers(self, *words: str) -> Iterator[psutil.Process]:
        """Yield the processes with these words of one machine after the other."""
        return (process for machine in self.cluster.workers for process in machine.find(*words))


def measuring_children(scene: Scene) -> Iterator[psutil.Process]:
    return filter(is_warm_child, scene.of_workers("workers.child.program", "workers.device.timing"))


def forks(process: psutil.Process) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.children()
    return []


def knows_the_database(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return "LOOPWRIGHT_DATABASE_URL" in process.environ()
    return False


PROCESSES: dict[str, Callable[[Scene], Iterator[psutil.Process] | list[psutil.Process]]] = {
    "builder": lambda scene: scene.of_workers("ray::Builder"),
    "measurer": lambda scene: scene.of_workers("ray::Measurer"),
    "measuring child": lambda scene: (child for child in measuring_children(scene) if forks(child)),
    "measuring fork": lambda scene: (fork for child in measuring_children(scene) for fork in forks(child)),
    "search child": lambda scene: filter(
        is_warm_child, scene.service.find("workers.child.program", "workers.child.search")
    ),
    "API": lambda scene: scene.service.find("-m service api"),
    "raylet": lambda scene: scene.cluster.workers[0].find("raylet/raylet"),
    "controller": lambda scene: scene.service.find("-m service controller"),
    "GCS": lambda scene: scene.cluster.head.find("gcs/gcs_server"),
}
"""Processes that may die, the first of which dies."""


def kill(scene: Scene, _: str, name: str) -> datetime:
    process = wait_for(f"a victim: {name}", lambda: next(iter(PROCESSES[name](scene)), None))
    process.kill()
    return datetime.now(UTC)


def freeze_machine(scene: Scene, _: str) -> datetime:
    """Stop all processes of a machine, as a hypervisor does. They go on when the job is over."""
    scene.cluster.workers[1].send(signal.SIGSTOP)
    return datetime.now(UTC)


def lose_database(scene: Scene, _: str) -> datetime:
    """Take the database away for a while, and return when it came back."""
    with scene.outage():
        time.sleep(OUTAGE_SECONDS)
    return datetime.now(UTC)


def lose_machine(scene: Scene, job_id: str) -> datetime:
    """Kill all processes of a machine, once the other one is at work. Start it again when the job has gone on."""
    scene.await_work_of_all(job_id)
    lost = scene.cluster.workers[1]
    lost.power_off()
    struck = datetime.now(UTC)
    scene.await_trials(job_id)
    lost.power_on()
    return struck


BLOWS: dict[str, Callable[[Scene, str], datetime]] = {
    **{name: functools.partial(kill, name=name) for name in PROCESSES},
    "database": lose_database,
    "machine": lose_machine,
    "frozen machine": freeze_machine,
}
"""Each returns the time from which the wait for the next trial counts."""
ROUND = (
    (
        (
            "raylet", "API", "builder", "measurer", "measuring child", "measuring fork", "search child", "database",
            "machine", "controller", "GCS",
        ),
        3,
    ),
)  # fmt: skip
LONG_ROUND = (*ROUND, (("frozen machine",), 1))
"""The blows of each job, one after the other, and the attempts that it may use up: one, and one for each controller
that dies. The machine whose raylet dies first joins again meanwhile: the loss of the other waits until both work."""


@contextlib.contextmanager
def away(path: Path) -> Iterator[None]:
    """Hold the lock of an SQLite database, as a copy of its file or a long transaction does."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


@contextlib.contextmanager
def scene_on(database: str, folder: Path) -> Iterator[Scene]:
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(machine_cluster("left", "right"))
        if database == "postgresql":
            server = stack.enter_context(postgres_server())
            url, outage = server.get_uri(), functools.partial(stopped, server)
            service = Service(folder, url)
        else:
            service = Service(folder)
            path = service.data_dir / "loopwright.db"
            url, outage = f"sqlite:///{path}", functools.partial(away, path)
        service.environment |= cluster.environment
        stack.enter_context(service)
        yield Scene(service, cluster, url, outage)


@dataclass(frozen=True, slots=True)
class Struck:
    """When a blow began, and from when on it is over: the database is away for a while."""

    began: datetime
    over: datetime


def longest_gap(finished: list[datetime], start: datetime, end: datetime) -> float:
    """Return the longest time between ``start`` and ``end`` in which no trial was finished, in seconds."""
    within = [start, *sorted(moment for moment in finished if start < moment < end), end]
    return max((after - before).total_seconds() for before, after in pairwise(within))


def live_through(scene: Scene, names: Sequence[str], attempts: int, seed: int) -> dict[str, float]:
    """Strike blows at a job, one after the other, and return the longest gap after each, in seconds."""
    scene.await_machines()
    job_id = scene.service.submit(product(128, 96), trials=TRIALS, seed=seed, force=True)
    scene.await_trials(job_id)
    assert not any(map(knows_the_database, scene.of_workers()))
    struck: dict[str, Struck] = {}
    for name in names:
        scene.await_trials(job_id)
        struck[name] = Struck(datetime.now(UTC), BLOWS[name](scene, job_id))
    job = scene.await_end(job_id)
    for machine in scene.cluster.workers:
        machine.send(signal.SIGCONT)
    assert job["state"] == "succeeded", job
    assert all(task["certified"] for task in job["tasks"])
    finished = [datetime.fromisoformat(trial["finished_at"]) for trial in check_ledger(scene.service, job)]
    with contextlib.closing(Database(scene.database_url)) as database:
        assert database.jobs.get(job_id).attempts == attempts
    ends = [*(each.began for each in struck.values()), max(finished)][1:]
    return {name: longest_gap(finished, each.over, end) for (name, each), end in zip(struck.items(), ends, strict=True)}


@pytest.mark.whole
@pytest.mark.parametrize("round", range(ROUNDS))
@pytest.mark.parametrize("database", ["postgresql", "sqlite"])
def test_jobs_outlive_every_process(
    database: str, round: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if missing := what_is_missing():
        pytest.skip(missing)
    with scene_on(database, tmp_path) as scene:
        found: dict[str, float] = {}
        for names, attempts in LONG_ROUND if round else ROUND:
            found |= live_through(scene, names, attempts, round)
        gaps.record(record_property, database, found)
        assert max(found.values()) < MOST_SECONDS, found
        assert scene.service.stop() == 0
        with ThreadPoolExecutor() as threads:
            for left in [threads.submit(machine.shut_down) for machine in scene.cluster.workers]:
                left.result()

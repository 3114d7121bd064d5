"""kill -9 of every process in the middle of a job: the job ends well, and the ledger holds each trial once."""

from __future__ import annotations

import contextlib
import functools
import signal
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import psutil
import pytest

from loopwright.codegen.kinds import FINISHED
from tests.support.ledger import check_ledger
from tests.support.programs import product
from tests.support.service import Service
from tests.support.service_client import JOB_SECONDS, stage_of
from tests.support.waiting import wait_for

pytestmark = pytest.mark.whole
PARTS = {
    "api": ("-m service api",),
    "controller": ("-m service controller",),
    "raylet": ("raylet/raylet",),
    "gcs": ("gcs/gcs_server",),
}
"""What the service starts again when it dies; Ray's with the controller."""
SUPERVISOR = ("-m service --data-dir",)
VICTIMS = {
    "builder": ("ray::Builder",),
    "measurer": ("ray::Measurer",),
    "measuring child": ("workers.child.program", "workers.device.timing"),
    "search": ("workers.child.program", "workers.child.search"),
}


@pytest.fixture(scope="module")
def mortal_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A running service for tests that kill or stop it, and start it again."""
    with Service(tmp_path_factory.mktemp("mortal")) as service:
        yield service


def _check(service: Service, job: dict[str, Any], killed_at: datetime) -> None:
    assert job["state"] == "succeeded", job
    assert all(task["certified"] for task in job["tasks"])
    assert datetime.fromisoformat(job["finished_at"]) > killed_at, "the job was over before the last kill"
    check_ledger(service, job)
    with sqlite3.connect(f"file:{service.data_dir / 'loopwright.db'}?mode=ro", uri=True) as database:
        counted = database.execute(
            "SELECT count(*), count(DISTINCT candidate_hash) FROM trials JOIN tasks ON tasks.id = trials.task_id "
            "WHERE tasks.job_id = ?",
            [job["id"]],
        ).fetchone()
    trials = job["budget"]["max_trials"]
    assert counted == (trials + 1, trials + 1)


def _kill(process: psutil.Process, blow: signal.Signals = signal.SIGKILL) -> datetime:
    process.send_signal(blow)
    return datetime.now(UTC)


def _finished(service: Service, job_id: str) -> dict[str, Any]:
    """The job, once it has ended, through the time without an API."""
    job: dict[str, Any] = {}

    def look() -> dict[str, Any] | None:
        with contextlib.suppress(httpx.TransportError):
            job.update(service.job(job_id))
        return job if job.get("state") in FINISHED else None

    return wait_for(f"the end of job {job_id}", look, JOB_SECONDS, progress=lambda: stage_of(job))


@pytest.mark.parametrize(
    ("part", "blow"),
    [
        *((part, signal.SIGKILL) for part in PARTS),
        *((part, signal.SIGSTOP) for part in ("raylet", "gcs")),
    ],
)
def test_a_part_that_is_killed_or_stopped_is_started_again(
    mortal_service: Service, part: str, blow: signal.Signals
) -> None:
    """Nobody but the service itself does anything: it says so in one line, and the job goes on."""
    service = mortal_service
    before = (service.folder / "stderr").read_text()
    job_id = service.submit(product(128, 96), trials=24, force=True)
    service.in_the_middle(job_id)
    (victim,) = service.find(*PARTS[part])
    killed_at = _kill(victim, blow)

    def line() -> str:
        return (service.folder / "stderr").read_text().removeprefix(before)

    wait_for(f"{part} to be missed", line)
    missed_at = datetime.now(UTC)
    job = _finished(service, job_id)

    def seen() -> bool:
        with contextlib.suppress(httpx.TransportError):
            workers = service.items("/workers")
            return any(datetime.fromisoformat(worker["last_seen_at"]) > missed_at for worker in workers)
        return False

    wait_for("an API and a worker", seen)
    _check(service, job, killed_at)
    assert service.running()
    assert line().count("is started again") == len(line().splitlines()) == 1


def test_a_killed_supervisor_goes_on_after_a_start(mortal_service: Service) -> None:
    """Nobody is left to end the others in order; a start at once must do all the same."""
    service = mortal_service
    job_id = service.submit(product(128, 96), trials=24, force=True)
    service.in_the_middle(job_id)
    (victim,) = service.find(*SUPERVISOR)
    killed_at = _kill(victim)
    assert service.process is not None
    service.process.wait()
    service.start()
    _check(service, service.finished(job_id), killed_at)


def test_killed_workers_cost_nothing(mortal_service: Service) -> None:
    """Every kind of worker process dies once within one job; the service stays up, and what was lost is tried again."""
    service = mortal_service
    job_id = service.submit(product(128, 96), trials=48, force=True)
    supervisor = service.process
    done = 0
    for words in VICTIMS.values():
        done = service.in_the_middle(job_id, trials=done + 3)["progress"]["trials"]
        _kill(service.find(*words)[0])
    service.in_the_middle(job_id, trials=done + 3)

    def fork() -> psutil.Process | None:
        """What runs a candidate right now, inside the measuring child."""
        children = service.find(*VICTIMS["measuring child"])
        return next((fork for child in children[:1] for fork in child.children()), None)

    killed_at = _kill(wait_for("a fork that measures", fork))
    _check(service, service.finished(job_id), killed_at)
    assert supervisor is not None
    assert supervisor.poll() is None


def test_kills_on_and_on(mortal_service: Service) -> None:
    """One job through every kind of death, one after the other."""
    service = mortal_service
    job_id = service.submit(product(128, 112), trials=300)
    for number, words in enumerate([*VICTIMS.values(), *PARTS.values()]):
        trials = 3 + 10 * number

        def reached(trials: int = trials) -> bool:
            with contextlib.suppress(httpx.TransportError):
                return service.job(job_id)["progress"]["trials"] >= trials
            return False

        wait_for(f"{trials} trials", reached, JOB_SECONDS)
        _kill(wait_for("a victim", functools.partial(service.find, *words))[0])
    job = _finished(service, job_id)
    assert job["state"] == "succeeded", job
    check_ledger(service, job)
    assert service.stop() == 0

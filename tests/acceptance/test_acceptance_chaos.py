"""kill -9 of every process in the middle of a job: the job ends well, and the ledger holds each trial once."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psutil
import pytest

from tests.support.ledger import check_ledger
from tests.support.programs import product
from tests.support.service import Service
from tests.support.waiting import wait_for

ROLES = {
    "api": ("-m service api",),
    "controller": ("-m service controller",),
    "supervisor": ("-m service --data-dir",),
}
VICTIMS = {
    "builder": ("ray::Builder",),
    "measurer": ("ray::Measurer",),
    "measuring child": ("workers.child", "workers.timing"),
    "loop": ("ray::JobRunner",),
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


def _kill(process: psutil.Process) -> datetime:
    process.send_signal(signal.SIGKILL)
    return datetime.now(UTC)


def test_a_service_that_was_killed_or_stopped_goes_on_after_a_start(mortal_service: Service) -> None:
    """The service ends as a whole, leaves no process behind, and a new one goes on: three times with one job."""
    service = mortal_service
    job_id = service.submit(product(128, 96), trials=48, force=True)
    done = 0
    for role in ("api", "controller"):
        done = service.in_the_middle(job_id, trials=done + 3)["progress"]["trials"]
        (victim,) = service.find(*ROLES[role])
        _kill(victim)
        assert service.ended() != 0
        assert f"the {role} process ended" in (service.folder / "stderr").read_text()
        service.start()
    service.in_the_middle(job_id, trials=done + 3)
    stopped_at = datetime.now(UTC)
    assert service.stop() == 0
    service.start()
    _check(service, service.finished(job_id), stopped_at)


@pytest.mark.long
def test_a_killed_supervisor_goes_on_after_a_start(mortal_service: Service) -> None:
    """Nobody is left to end the others in order; a start at once must do all the same."""
    service = mortal_service
    job_id = service.submit(product(128, 96), trials=24, force=True)
    service.in_the_middle(job_id)
    (victim,) = service.find(*ROLES["supervisor"])
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


@pytest.mark.long
def test_kills_on_and_on(mortal_service: Service) -> None:
    """One job through every kind of death, one after the other."""
    service = mortal_service
    job_id = service.submit(product(128, 112), trials=120)
    for number, words in enumerate([*VICTIMS.values(), ROLES["api"], ROLES["controller"]]):
        service.in_the_middle(job_id, trials=3 + 10 * number)
        _kill(service.find(*words)[0])
        if words[0].startswith("-m service"):
            service.ended()
            service.start()
    job = service.finished(job_id)
    assert job["state"] == "succeeded", job
    check_ledger(service, job)
    assert service.stop() == 0

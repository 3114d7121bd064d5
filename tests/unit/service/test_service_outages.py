"""Controllers and loops of jobs whose calls of the database are cut off: they go on, and use no attempt."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from db import Database, migrate
from db.errors import DatabaseAway
from db.inputs import NewJob
from db.views import ClaimedJob, JobChanged, JobView
from loopwright.codegen.kinds import JobState
from service.controller import controller
from service.controller.controller import Controller
from service.controller.job_runner import JobRunner, RunEnd
from service.settings import Settings
from tests.support.idle_loops import IdleLoops, NoSearches, OneNode
from tests.support.played_fleet import MACHINE
from tests.support.waiting import wait_for
from tuner.budget import Budget
from workers.ray.crew import Crew
from workers.ray.sharing import Sharing


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings(data_dir=tmp_path)
    migrate.upgrade(settings.database)
    return settings


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    database = Database(settings.database)
    yield database
    database.close()


@pytest.fixture
def job(database: Database) -> JobView:
    return database.jobs.create(NewJob("job", "{}", MACHINE, Budget(8)), [], "0.27")


def states(database: Database, job: JobView) -> list[JobState]:
    changes = [event.change for event in database.events.after(job.id)]
    return [change.state for change in changes if isinstance(change, JobChanged)]


def cut_off_once(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call whose first answer, with something in it, is lost on its way."""
    was_cut_off = False

    def called(*arguments: Any, **named: Any) -> Any:
        nonlocal was_cut_off
        answer = call(*arguments, **named)
        if answer is not None and not was_cut_off:
            was_cut_off = True
            raise DatabaseAway("the connection ended before the answer was there")
        return answer

    return called


@pytest.mark.parametrize("lost", ["claim", "inputs of the claim"])
def test_a_job_that_a_cut_off_controller_claimed_is_claimed_again(
    settings: Settings, database: Database, job: JobView, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    monkeypatch.setattr(controller, "_HOLD_SECONDS", 0.2)
    if lost == "claim":
        monkeypatch.setattr(database.jobs, "claim", cut_off_once(database.jobs.claim))
    else:
        monkeypatch.setattr(database.tasks, "of_job", cut_off_once(database.tasks.of_job))
    # No task is open, but a machine is needed.
    monkeypatch.setattr(database.gates, "of_job", lambda _: type("Gate", (), {"result": None}))
    loops = IdleLoops()
    stop = threading.Event()
    thread = threading.Thread(target=Controller(settings, database, OneNode(), loops).run, args=(stop,))
    thread.start()
    try:
        wait_for("the job to be taken up", lambda: loops.running)
        assert states(database, job) == [JobState.QUEUED, JobState.RUNNING, JobState.QUEUED, JobState.RUNNING]
        assert database.jobs.get(job.id).attempts == 1
    finally:
        stop.set()
        thread.join()
    assert database.jobs.get(job.id).state == "queued"
    assert database.jobs.get(job.id).attempts == 0


def runner_of(database: Database, run: Callable[[ClaimedJob], RunEnd]) -> JobRunner:
    """A loop without a search, whose runs are ``run``."""
    runner = JobRunner(database, NoSearches(), Sharing())
    runner._run = lambda claimed, *_: run(claimed)  # type: ignore[method-assign]
    return runner


def test_a_loop_that_is_cut_off_begins_again_from_what_is_stored(database: Database, job: JobView) -> None:
    claimed = database.jobs.claim("me", 60)
    assert claimed is not None
    runs: list[float] = []

    def run(claimed: ClaimedJob) -> RunEnd:
        runs.append(claimed.job.elapsed_s)
        if len(runs) == 1:
            assert database.jobs.renew(job.id, claimed.lease_token, 60, add_elapsed=7.0)
            raise DatabaseAway("gone")
        return RunEnd.DONE

    assert runner_of(database, run).run(claimed, Crew) is RunEnd.DONE
    assert runs == [0.0, 7.0]


def test_a_loop_whose_job_was_taken_over_during_an_outage_ends(database: Database, job: JobView) -> None:
    claimed = database.jobs.claim("me", 60)
    assert claimed is not None
    runs: list[ClaimedJob] = []

    def run(claimed: ClaimedJob) -> RunEnd:
        runs.append(claimed)
        database.jobs.expire_leases("me")
        assert database.jobs.claim("other", 60) is not None
        raise DatabaseAway("gone")

    assert runner_of(database, run).run(claimed, Crew) is RunEnd.LOST
    assert len(runs) == 1

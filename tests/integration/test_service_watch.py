"""A controller's eye on its workers, on a real cluster: peaks, checks, quarantine, and jobs that wait for its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from db import Database, migrate
from db.inputs import NewJob
from db.views import WorkerView
from service.controller import controller
from service.controller.controller import Controller
from service.controller.job_runner import JobRunner
from service.controller.loops import Loops
from service.fleet.watch import Watch
from service.settings import Settings
from tests.support import workloads as programs
from tests.support.waiting import wait_for
from tuner.budget import Budget
from tuner.types import TaskSpec
from workers.child.search_children import SearchChildren
from workers.ray.cluster import Cluster, Offer
from workers.ray.sharing import Sharing
from workers.walls.levels import choose

SECONDS = 120.0


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


def worker(database: Database, offer: Offer) -> WorkerView:
    return next(view for view in database.workers.all(SECONDS) if view.id == offer.id)


def make_slow(database: Database, offer: Offer) -> None:
    """What the next checks would say if the machine were ten times as slow as at first."""
    first = worker(database, offer).checks[0].secs
    for _ in range(3):
        database.workers.add_check(offer.id, 10 * first)


@pytest.mark.whole
def test_workers_are_measured_as_they_join_and_held_out_as_they_drift(
    cluster: Cluster, offer: Offer, database: Database
) -> None:
    watch = Watch(database, cluster)
    offers = cluster.reconcile()

    def beat() -> set[str]:
        return watch.beat(offers)

    assert beat() == set()
    wait_for("the first check", lambda: beat() == set() and bool(worker(database, offer).checks))
    assert worker(database, offer).sandbox is offer.sandbox
    peaks = database.devices.peaks(offer.device_class.id)
    assert peaks is not None
    assert min(peaks.flops, peaks.bytes_per_s) > 1e8
    make_slow(database, offer)
    assert beat() == {offer.id}
    view = worker(database, offer)
    assert view.quarantined_at is not None
    assert "10.00 times" in (view.quarantine_reason or "")
    database.workers.readmit(offer.id)
    assert beat() == set()
    assert worker(database, offer).quarantine_reason is None


def test_a_worker_that_does_not_answer_is_not_seen(
    cluster: Cluster, offer: Offer, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(database, cluster)
    watch.beat([offer])
    seen = worker(database, offer).last_seen_at
    monkeypatch.setattr(cluster, "activity", lambda _: {})
    assert watch.beat([offer]) == set()
    assert worker(database, offer).last_seen_at == seen
    assert not watch.is_silent(offer)
    monkeypatch.setattr("service.fleet.watch.LIVE_SECONDS", 0.0)
    assert watch.is_silent(offer)
    monkeypatch.undo()
    watch.beat([offer])
    assert worker(database, offer).last_seen_at > seen


@pytest.mark.whole
def test_a_job_waits_while_its_only_worker_is_held_out(
    cluster: Cluster, offer: Offer, database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "_HEARTBEAT_SECONDS", 0.5)
    stop = threading.Event()
    searches, sharing = SearchChildren(choose(settings.walls)), Sharing()
    loops = Loops(lambda: JobRunner(database, searches, sharing), places=2)
    thread = threading.Thread(target=Controller(settings, database, cluster, loops).run, args=(stop,))
    thread.start()
    try:
        wait_for(
            "the first check", lambda: bool(database.workers.all(SECONDS)) and bool(worker(database, offer).checks)
        )
        job = database.jobs.create(
            NewJob("job", "{}", offer.device_class, Budget(400)), [TaskSpec(programs.product(), 1)], "0.27.0.post1"
        )

        def trials() -> int:
            return database.tasks.of_job(job.id)[0].trials

        wait_for("trials", lambda: trials() > 2)
        make_slow(database, offer)
        # Its loop is ended; the job waits in the queue for want of a worker.
        wait_for("the job to be put back", lambda: database.jobs.get(job.id).state == "queued")
        assert database.jobs.get(job.id).attempts == 0
        wait_for("its loop to end", lambda: not loops.running)
        held = trials()
        assert 2 < held < 400
        database.workers.readmit(offer.id)
        wait_for("more trials", lambda: trials() > held)
        database.jobs.request_cancel(job.id)
        wait_for("the end", lambda: database.jobs.get(job.id).state == "cancelled")
    finally:
        stop.set()
        thread.join()

"""A process that writes is killed in the middle: what it was told is stored, is stored, and the rest goes on."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest
import sqlalchemy

from db import Database
from db.engine.connections import create_engine
from tests.contract.db.conftest import World
from tuner.types import Measured

WRITER = """
import sys
from db import Database
from tuner.types import MeasureCandidate, Measured, Origin

db = Database(sys.argv[1])
job = db.jobs.claim("writer", 3600)
[task] = db.tasks.of_job(job.job.id)
assert db.tasks.try_start(task.id, job.lease_token)
number = 0
while True:
    batch = [MeasureCandidate(f"[{number + n}]", Origin.RANDOM) for n in range(8)]
    number += 8
    for trial in db.trials.propose(task.id, job.lease_token, batch):
        assert db.trials.finish(trial.id, job.lease_token, Measured((0.5,), "writer"))
        print(trial.id, flush=True)
"""


@pytest.mark.parametrize("lines", [1, 20, pytest.param(61, marks=pytest.mark.whole)])
def test_kill_in_the_middle_of_writing(world: World, url: str, lines: int) -> None:
    job = world.job()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True)
    told = [writer.stdout.readline().strip() for _ in range(lines)]
    writer.kill()
    told += writer.stdout.read().split()
    writer.wait()

    if url.startswith("sqlite"):
        engine = create_engine(url)
        with engine.connect() as connection:
            assert connection.execute(sqlalchemy.text("PRAGMA integrity_check")).scalar() == "ok"
        engine.dispose()

    db = Database(url, lambda: datetime.now(UTC))
    assert db.jobs.expire_leases("writer") == 1
    claimed = db.jobs.claim("next", 3600)
    assert claimed.job.id == job.id
    task = world.task(job.id)
    assert task.state == "queued"
    assert db.tasks.try_start(task.id, claimed.lease_token)

    history = db.trials.history(task.id)
    finished = [trial.id for trial in history if trial.outcome is not None]
    unfinished = [trial.id for trial in history if trial.outcome is None]
    # The last one may have been stored without anybody being told.
    assert finished[: len(told)] == told
    assert len(finished) - len(told) <= 1
    assert len(history) % 8 == 0
    assert task.trials == len(finished)

    assert db.trials.adopt(task.id, claimed.lease_token) == len(unfinished)
    assert all(db.trials.finish(id, claimed.lease_token, Measured((0.5,), "next")) for id in unfinished)
    events = [event.change.trial.id for event in db.events.after(job.id, limit=10_000) if event.type == "trial"]
    assert events == finished + unfinished
    assert [line.number for line in db.trials.page(job.id, 500).items] == list(range(1, len(history) + 1))
    db.close()

"""Calls whose cost could depend on how many jobs wait.

.venv/bin/python -m benchmarks.calls.queue URL REPEATS

Prints their figures as JSON. A process of its own, without TVM, as controllers are.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from benchmarks.calls.meter import Figures, Meter
from benchmarks.controllers.made_up import MACHINE
from db import Database
from db.access.visibility import Viewer
from db.inputs import LabelledMachine, NewJob
from db.views import ClaimedJob
from tuner.budget import Budget
from tuner.types import DeviceClass, TaskSpec, TensorInfo, Workload

_LEASE_SECONDS = 3600.0
_OTHER = DeviceClass(MACHINE.target_json, "another", ("made up",), 8, 8, "simulated")
_USER = "user-3"


def calls(db: Database, meter: Meter, repeats: int) -> dict[str, Figures]:
    """Return the figures of each call, and leave the queue as long as it was."""
    here = [LabelledMachine(MACHINE)]
    claimed: list[ClaimedJob] = []
    mine = db.seen_by(Viewer(_USER))
    reads: dict[str, Callable[[], object]] = {
        "claim, nothing for these machines": lambda: db.jobs.claim("calls", 30.0, machines=[LabelledMachine(_OTHER)]),
        "look for jobs that the database answers": lambda: db.jobs.claim("calls", 30.0, answered=True),
        "totals of the overview": db.totals,
        "totals of the overview, a user": mine.totals,
        "page of 50 jobs with their tasks": lambda: _page(db),
        "page of 50 jobs with their tasks, a user": lambda: _page(mine),
        "page of the user's own jobs": lambda: db.jobs.page(user_name=_USER),
        "use of a user": lambda: db.uses.of(_USER),
        "counts of /metrics": db.counts,
    }
    found = {
        "claim": meter.repeated(lambda: claimed.append(_claim(db, here)), repeats),
        "submission of a job with two functions": meter.measured(lambda number: _submit(db, number), range(repeats)),
        **{name: meter.repeated(call, repeats) for name, call in reads.items()},
    }
    for each in claimed:
        db.jobs.release(each.job.id, each.lease_token)
    return found


def _claim(db: Database, machines: list[LabelledMachine]) -> ClaimedJob:
    claimed = db.jobs.claim("calls", _LEASE_SECONDS, machines=machines)
    assert claimed is not None
    return claimed


def _submit(db: Database, number: int) -> None:
    new = NewJob("submitted", "{}", MACHINE, Budget(64), user_name=_USER)
    db.jobs.create(new, [TaskSpec(_workload(2 * number + position), 1) for position in range(2)], "simulated")


def _workload(number: int) -> Workload:
    args = (TensorInfo((64, 100_000 + number), "float32"),)
    return Workload(f"submitted-{number}", "submitted", f"submitted_{number}", "{}", "", args)


def _page(db: Database) -> None:
    db.tasks.of_jobs([job.id for job in db.jobs.page(50).items])


def main() -> None:
    url, repeats = sys.argv[1:]
    db = Database(url)
    print(json.dumps(calls(db, Meter(url), int(repeats))))
    db.close()


if __name__ == "__main__":
    main()

"""A queue of jobs, each with a function of its own, on one kind of machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert

from benchmarks import rows
from benchmarks.rows import filling, name
from db import models
from db.devices import target_id
from db.inputs import space_hash
from tuner.types import DeviceClass

TRIALS = 64
"""Of each job."""
_TARGET = '{"kind": "llvm", "mcpu": "znver4", "num-cores": 32}'
MACHINE = DeviceClass(_TARGET, "AuthenticAMD znver4 a07c", ("made up",), 32, 32, "simulated")
_AT_ONCE = 5_000
_USERS = 20


def queue(database_url: str, jobs: int) -> None:
    """Make the tables, and fill them with so many queued jobs."""
    now = datetime.now(UTC)
    with filling(database_url) as engine:
        with engine.begin() as connection:
            target = {"id": target_id(_TARGET), "json": _TARGET, "kind": "llvm"}
            connection.execute(insert(models.Target), target)
            rows.device_class(connection, MACHINE)
            users = [{"name": _user(number), "role": "submit", "created_at": now} for number in range(_USERS)]
            connection.execute(insert(models.User), users)
        for first in range(0, jobs, _AT_ONCE):
            numbers = range(first, min(first + _AT_ONCE, jobs))
            with engine.begin() as connection:
                connection.execute(insert(models.Workload), [_workload(number, now) for number in numbers])
                connection.execute(insert(models.Job), [_job(number, now) for number in numbers])
                connection.execute(insert(models.Task), [_task(number) for number in numbers])


def _user(number: int) -> str:
    return f"user-{number % _USERS}"


def _workload(number: int, now: datetime) -> dict[str, Any]:
    return {
        "hash": name("workload", number) * 2,
        "family": "",
        "name": f"product_{number}",
        "module_json": "{}",
        "script": "",
        "args": [[[64, 64 + number], "float32", "any"], [[64, 64], "float32", "any"]],
        "op": "matmul",
        "compute_dtype": "float32",
        "flop": None,
        "tvm_version": "simulated",
        "shared": True,
        "created_at": now,
    }


def _job(number: int, now: datetime) -> dict[str, Any]:
    queued = {"state": "queued", "started_at": None, "finished_at": None, "attempts": 0, "elapsed_s": 0.0}
    more = {"user_name": _user(number), "budget": {"max_trials": TRIALS}, "saved_secs": 0.0}
    since = now - timedelta(days=1) + timedelta(milliseconds=number)
    return rows.job(name("job", number), f"job {number}", MACHINE, since, **queued, **more)


def _task(number: int) -> dict[str, Any]:
    return {
        "id": name("task", number),
        "job_id": name("job", number),
        "position": 0,
        "workload_hash": name("workload", number) * 2,
        "name": f"product_{number}",
        "weight": 1,
        "key": f"{name('workload', number)} {MACHINE.id} {space_hash(None)}",
        "state": "queued",
    }

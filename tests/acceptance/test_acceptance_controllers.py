"""Three controllers, each a process, share the devices of two machines as one would, and outlive one of them."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy

from db import Database
from db.views import LeaseView
from tests.support.ledger import check_ledger
from tests.support.machines import machine_cluster
from tests.support.network_namespaces import what_is_missing
from tests.support.postgres import postgres_server
from tests.support.programs import product
from tests.support.service import Service
from tests.support.service_client import JOB_SECONDS
from tests.support.waiting import wait_for

LARGE, SMALL = 160, 16
"""Trials of the jobs that are there first, and of the urgent one."""
SHARE = 0.4
"""Of all trials while the urgent job searches. Without an order over controllers it would have a third. A job without a
device for ten seconds is first for one, and on a busy machine the urgent job takes longer than that: then it has half.
"""


@dataclass(frozen=True, slots=True)
class Controllers:
    """One in ``service``, which has an API, too, and ``others``. Each works on one job at a time."""

    service: Service
    others: tuple[Service, ...]
    database: Database

    def leases(self, *job_ids: str) -> dict[str, LeaseView]:
        """Return the leases of these jobs, by job, once all of them are running."""

        def look() -> dict[str, LeaseView] | None:
            found = {lease.job_id: lease for lease in self.database.jobs.leases()}
            return {id: found[id] for id in job_ids} if found.keys() >= set(job_ids) else None

        return wait_for("all jobs to run", look, JOB_SECONDS)

    def devices(self, owner: str) -> list[str]:
        """Return the devices that a controller has."""
        asked = sqlalchemy.text("SELECT id FROM workers WHERE leased_to = :owner")
        with self.database._engine.connect() as connection:
            return list(connection.scalars(asked, {"owner": owner}))


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[Controllers]:
    if missing := what_is_missing():
        pytest.skip(missing)
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(machine_cluster("left", "right"))
        url = stack.enter_context(postgres_server()).get_uri()
        first, *others = [Service(tmp_path / name, url) for name in "abc"]
        for each in (first, *others):
            each.environment |= cluster.environment | {"LOOPWRIGHT_MAX_JOBS": "1"}
        stack.enter_context(first)
        for other in others:
            stack.callback(other.destroy)
            other.launch("controller")
        yield Controllers(first, tuple(others), stack.enter_context(contextlib.closing(Database(url))))


@pytest.mark.whole
def test_controllers_share_devices_as_one_would_and_outlive_each_other(controllers: Controllers) -> None:
    service = controllers.service
    large = [service.submit(product(128, 96 + 32 * number), trials=LARGE, force=True) for number in range(2)]
    for job_id in large:
        service.in_the_middle(job_id)
    urgent = service.submit(product(96, 112), trials=SMALL, force=True, priority=5)
    leases = controllers.leases(*large, urgent)
    assert len({lease.owner for lease in leases.values()}) == 3

    job = service.finished(urgent)
    assert job["state"] == "succeeded", job
    assert [service.job(id)["state"] for id in large] == ["running"] * 2, "over too soon for this test"
    times = sorted(trial["finished_at"] for trial in check_ledger(service, job))
    meanwhile = [
        trial
        for id in large
        for trial in service.items(f"/jobs/{id}/trials")
        if trial["finished_at"] and times[0] < trial["finished_at"] <= times[-1]
    ]
    assert SHARE * (SMALL + len(meanwhile)) < SMALL, len(meanwhile)

    # A controller with an API is started again, and takes up its own.
    owners = {f":{other.data_dir}": other for other in controllers.others}
    lost, dies = next((id, owner) for id in large for owner in owners if leases[id].owner.endswith(owner))
    owner = leases[lost].owner
    wait_for("it to have a device", lambda: controllers.devices(owner), JOB_SECONDS)
    process = owners[dies].process
    assert process is not None
    process.send_signal(signal.SIGKILL)
    wait_for("its devices to be free", lambda: not controllers.devices(owner))
    wait_for("another one to take up its job", lambda: controllers.leases(lost)[lost].owner != owner)
    for id in large:
        job = service.finished(id)
        assert job["state"] == "succeeded", job
        check_ledger(service, job)
        assert controllers.database.jobs.get(id).attempts == 1 + (id == lost)
    assert service.stop() == 0

"""A rolling upgrade: processes and nodes of earlier code and of this one work on one database, in one cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from db import migrate
from tests.support.earlier_code import unpack_earlier
from tests.support.ledger import check_ledger
from tests.support.postgres import postgres_server
from tests.support.programs import product_relu
from tests.support.ray_nodes import TOKEN, RayNodes, join, ray_head
from tests.support.service import ROOT, START_SECONDS, Service
from tests.support.waiting import wait_for

TRIALS = 32
LONG_TRIALS = 64
"""Of jobs that are to be at work at the same time: one controller may take its own up seconds before the other."""


class Part(Service):
    """An API or a controller, of the code in a checkout, which only PYTHONPATH names.

    Ray would hand the directory in which a controller starts to the processes of the nodes, which have code of
    their own.
    """

    def __init__(self, folder: Path, role: str, code: Path, database_url: str, nodes: RayNodes) -> None:
        super().__init__(folder, database_url)
        self.data_dir.mkdir()
        (self.data_dir / "token").write_text(TOKEN)
        self.directory = folder
        self.environment |= nodes.environment | {"LOOPWRIGHT_RAY_ADDRESS": nodes.address, "PYTHONPATH": path_of(code)}
        self.environment["LOOPWRIGHT_MAX_JOBS"] = "1"
        self.role = role

    def start(self) -> None:
        """Return when an API answers; a controller is given its time."""
        self.launch(self.role)
        if self.role == "api":
            wait_for("the API", self._answers, START_SECONDS)
            self.connect()

    def migrate(self) -> None:
        assert self.launch("migrate").wait(START_SECONDS) == 0, self.logs()

    def _answers(self) -> bool:
        assert self.running(), self.logs()
        try:
            return httpx.get(f"{self.url}/readyz", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False


def path_of(code: Path) -> str:
    return os.pathsep.join([str(code), str(code / "client")])


@pytest.fixture
def nodes() -> Iterator[RayNodes]:
    with ray_head() as nodes:
        yield nodes


@pytest.mark.whole
def test_earlier_code_and_this_one_share_a_database_and_a_cluster(nodes: RayNodes, tmp_path: Path) -> None:
    """In the order of docs/operations.md: tables, controllers, APIs, nodes."""
    earlier = tmp_path / "code"
    unpack_earlier(earlier)
    with ExitStack() as stack:
        url = stack.enter_context(postgres_server()).get_uri()

        def part(name: str, role: str, code: Path) -> Part:
            made = Part(tmp_path / name, role, code, url, nodes)
            stack.callback(made.destroy)
            return made

        old_api, old_controller = (part(f"old-{role}", role, earlier) for role in ("api", "controller"))
        new_api, new_controller = (part(f"new-{role}", role, ROOT) for role in ("api", "controller"))
        old_api.migrate()
        assert migrate.is_behind(url)
        nodes.environment["PYTHONPATH"] = path_of(earlier)
        old_node = join(nodes, "--num-cpus=2")
        old_controller.start()
        old_api.start()
        ended = [old_api.tuned(product_relu(188), trials=4)]

        # The new code does not start before the tables are there; the old one goes on when they are.
        assert new_controller.launch("controller").wait(START_SECONDS) == 1
        running = old_api.submit(product_relu(188), trials=TRIALS, force=True)
        old_api.in_the_middle(running)
        new_api.migrate()
        assert not migrate.is_behind(url)
        ended += [finished(old_api, running), finished(old_api, old_api.submit(product_relu(196), trials=4))]

        # Both versions at once, on a node of the old one.
        new_controller.start()
        new_api.start()
        wait_for("a worker", lambda: "/cpu can be used" in said(new_controller), START_SECONDS)
        by_old, by_new = at_once(old_api, new_api)
        ended += [finished(new_api, by_old), finished(old_api, by_new)]
        for controller in (old_controller, new_controller):
            wait_for("a job of each controller", partial(done, controller, (by_old, by_new)))

        # A job of the old controller goes on with the new one.
        left = at_once(old_api, new_api)
        assert old_controller.stop() == 0
        ended += [finished(old_api, job_id) for job_id in left]

        # The node follows last.
        old_api.stop()
        nodes.lose(old_node)
        nodes.environment["PYTHONPATH"] = path_of(ROOT)
        join(nodes, "--num-cpus=2")
        ended.append(finished(new_api, new_api.submit(product_relu(188), trials=TRIALS, force=True)))

        for job in ended:
            assert new_api.job(job["id"])["tasks"] == job["tasks"]
        assert {job["id"] for job in new_api.items("/jobs")} == {job["id"] for job in ended}


def finished(api: Part, job_id: str) -> dict[str, Any]:
    """Return the job once it has succeeded, with each of its trials in the ledger once."""
    job = api.finished(job_id)
    assert job["state"] == "succeeded", job
    check_ledger(api, job)
    return job


def at_once(old_api: Part, new_api: Part) -> tuple[str, str]:
    """Submit a job to each API, and return both in the middle: a controller has a place for one only."""
    by_old = old_api.submit(product_relu(196), trials=LONG_TRIALS, force=True)
    by_new = new_api.submit(product_relu(204), trials=LONG_TRIALS, force=True)
    new_api.in_the_middle(by_old)
    old_api.in_the_middle(by_new)
    assert [new_api.job(job_id)["state"] for job_id in (by_old, by_new)] == ["running", "running"]
    return by_old, by_new


def done(controller: Part, job_ids: tuple[str, str]) -> list[str]:
    """Return which of the jobs the controller has carried to their end."""
    return [job_id for job_id in job_ids if f"job {job_id}: done" in said(controller)]


def said(part: Part) -> str:
    return (part.folder / "stderr").read_text()

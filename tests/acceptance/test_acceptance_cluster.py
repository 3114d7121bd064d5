"""A cluster whose workers know no database, and machines that join it and leave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.programs import product_relu
from tests.support.ray_nodes import TOKEN, RayNodes, below, join, joined_by_command, ray_head
from tests.support.service import START_SECONDS, Service
from tests.support.waiting import wait_for

pytestmark = pytest.mark.whole
PROGRAM = product_relu(28)


@pytest.fixture
def nodes() -> Iterator[RayNodes]:
    with ray_head() as nodes:
        yield nodes


def test_nodes_that_build_and_measure_know_no_database(nodes: RayNodes, tmp_path: Path) -> None:
    worker = join(nodes, "--num-cpus=1")
    beside = join(nodes, "--num-cpus=0")
    service = Service(tmp_path)
    service.environment |= nodes.environment | {"LOOPWRIGHT_RAY_ADDRESS": nodes.address}
    with service:
        service.tuned(PROGRAM, trials=4)
        on_worker = {process.name() for process in below(worker)}
        beside_controller = {process.name() for process in below(beside)}
        known = [process.environ() for process in below(worker)]
    assert {"ray::Measurer", "ray::Builder"} <= {name.split(".")[0] for name in on_worker}
    assert not any(name.startswith(("ray::Measurer", "ray::Builder")) for name in beside_controller)
    assert len(known) > 3
    assert not any("LOOPWRIGHT_DATABASE_URL" in environment for environment in known)


def test_a_machine_joins_by_one_command_and_leaves_in_order(nodes: RayNodes, tmp_path: Path) -> None:
    join(nodes, "--num-cpus=0")
    host, said = joined_by_command(nodes, tmp_path, TOKEN)
    try:
        wait_for(f"the host, see {said}", lambda: "joined" in said.read_text() or None, START_SECONDS)
        family = below(host)
        service = Service(tmp_path)
        service.environment |= nodes.environment | {"LOOPWRIGHT_RAY_ADDRESS": nodes.address}
        with service:
            service.tuned(product_relu(152), trials=4, labels={"rack": "a"})
            (worker,) = service.get("/workers")["items"]
            assert (worker["id"], worker["labels"]["rack"]) == ("box/cpu", "a")
            host.terminate()
            assert host.wait(START_SECONDS) == 0
    finally:
        host.kill()
    assert [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE] == []


def test_a_machine_with_a_wrong_token_is_told_so(nodes: RayNodes, tmp_path: Path) -> None:
    host, said = joined_by_command(nodes, tmp_path, "1" * 64)
    assert host.wait(START_SECONDS) == 1
    (line,) = said.read_text().splitlines()
    assert nodes.address in line
    assert str(tmp_path / "ray-token") in line

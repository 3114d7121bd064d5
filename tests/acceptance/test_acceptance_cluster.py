"""A cluster whose workers know no database: loops of jobs run on the nodes that offer to."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.programs import product_relu
from tests.support.service import START_SECONDS, Service, free_port
from tests.support.waiting import wait_for

PROGRAM = product_relu(28)


class RayNodes:
    """Nodes started as people start them, by ``ray start``, on one machine."""

    def __init__(self, folder: Path) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self.environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64, "RAY_USAGE_STATS_ENABLED": "0"}
        self._folder = folder
        self._nodes: list[subprocess.Popen[bytes]] = []

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Return when the node has joined."""
        command = [str(Path(sys.executable).with_name("ray")), "start", "--block", *options]
        path = self._folder / f"node-{len(self._nodes)}.log"
        with path.open("ab") as log:
            node = subprocess.Popen(command, env={**os.environ, **self.environment}, stdout=log, stderr=log)
        self._nodes.append(node)
        wait_for(f"a node, see {path}", lambda: "Ray runtime started" in path.read_text() or None, START_SECONDS)
        return node

    def stop(self) -> None:
        for node in reversed(self._nodes):
            family = psutil.Process(node.pid).children(recursive=True)
            node.kill()
            node.wait()
            for process in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()


@pytest.fixture
def nodes() -> Iterator[RayNodes]:
    folder = Path(tempfile.mkdtemp(prefix="rn"))  # a short path: Ray's sockets lie below it
    nodes = RayNodes(folder)
    head = ("--head", f"--port={nodes.address.split(':')[1]}", "--num-cpus=0", f"--temp-dir={folder}")
    try:
        nodes.start(*head, "--include-dashboard=false", "--min-worker-port=0", "--max-worker-port=0")
        yield nodes
    finally:
        nodes.stop()
        shutil.rmtree(folder, ignore_errors=True)


def join(nodes: RayNodes, *options: str) -> subprocess.Popen[bytes]:
    """Start a node that joins, with ports of its own."""
    return nodes.start(f"--address={nodes.address}", "--min-worker-port=0", "--max-worker-port=0", *options)


def below(node: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(node.pid).children(recursive=True)


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


def joined_by_command(nodes: RayNodes, folder: Path, token: str) -> tuple[subprocess.Popen[bytes], Path]:
    """Start ``python -m workers.host``, and return its process and what it says."""
    secret, said = folder / "ray-token", folder / "host.log"
    secret.write_text(token)
    options = [
        f"--address={nodes.address}",
        f"--token-file={secret}",
        "--name=box",
        "--label=rack=a",
        "--sandbox=prefer",
    ]
    with said.open("wb") as log:
        host = subprocess.Popen([sys.executable, "-m", "workers.host", *options], stdout=log, stderr=log)
    return host, said


def test_a_machine_joins_by_one_command_and_leaves_in_order(nodes: RayNodes, tmp_path: Path) -> None:
    join(nodes, "--num-cpus=0")
    host, said = joined_by_command(nodes, tmp_path, "0" * 64)
    try:
        wait_for(f"the host, see {said}", lambda: "joined" in said.read_text() or None, START_SECONDS)
        family = below(host)
        service = Service(tmp_path)
        service.environment |= nodes.environment | {"LOOPWRIGHT_RAY_ADDRESS": nodes.address}
        with service:
            service.tuned(product_relu(152), trials=4, labels={"rack": "a"})
            (worker,) = service.get("/workers")["items"]
            assert (worker["id"], worker["labels"]) == ("box/cpu", {"rack": "a"})
            host.terminate()
            assert host.wait(START_SECONDS) == 0
            assert "nothing is being measured any more" in said.read_text()
    finally:
        host.kill()
    assert [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE] == []


def test_a_machine_with_a_wrong_token_is_told_so(nodes: RayNodes, tmp_path: Path) -> None:
    host, said = joined_by_command(nodes, tmp_path, "1" * 64)
    assert host.wait(START_SECONDS) == 1
    (line,) = said.read_text().splitlines()
    assert f"{nodes.address} refuses the token of {tmp_path / 'ray-token'}" in line

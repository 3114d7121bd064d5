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

"""Nodes of a Ray cluster, started on this machine as people start them on several."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.support.processes import clean_environment
from tests.support.service import START_SECONDS, free_port
from tests.support.waiting import wait_for

TOKEN = "0" * 64


class RayNodes:
    """Nodes started as people start them, by ``ray start``, on one machine."""

    def __init__(self, folder: Path) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self.environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN, "RAY_USAGE_STATS_ENABLED": "0"}
        self._folder = folder
        self._nodes: list[subprocess.Popen[bytes]] = []
        self._numbers = itertools.count()

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Return when the node has joined."""
        command = [str(Path(sys.executable).with_name("ray")), "start", "--block", *options]
        path = self._folder / f"node-{next(self._numbers)}.log"
        with path.open("ab") as log:
            node = subprocess.Popen(command, env=clean_environment() | self.environment, stdout=log, stderr=log)
        self._nodes.append(node)
        wait_for(f"a node, see {path}", lambda: "Ray runtime started" in path.read_text() or None, START_SECONDS)
        return node

    def lose(self, node: subprocess.Popen[bytes]) -> None:
        """Kill a node with all that runs on it."""
        self._nodes.remove(node)
        family = psutil.Process(node.pid).children(recursive=True)
        node.kill()
        node.wait()
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def stop(self) -> None:
        for node in reversed(self._nodes.copy()):
            self.lose(node)


@contextlib.contextmanager
def ray_head() -> Iterator[RayNodes]:
    """Start the head, which takes no work, and stop it at the end with all nodes."""
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


def joined_by_command(
    nodes: RayNodes, folder: Path, token: str = TOKEN, name: str = "box"
) -> tuple[subprocess.Popen[bytes], Path]:
    """Start ``python -m workers.host``, and return its process and what it says."""
    secret, said = folder / "ray-token", folder / f"{name}.log"
    secret.write_text(token)
    options = [
        f"--address={nodes.address}",
        f"--token-file={secret}",
        f"--name={name}",
        "--label=rack=a",
        "--sandbox=prefer",
    ]
    with said.open("wb") as log:
        host = subprocess.Popen(
            [sys.executable, "-m", "workers.host", *options], env=clean_environment(), stdout=log, stderr=log
        )
    return host, said

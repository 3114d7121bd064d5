"""A Ray cluster of several machines: a head on this host, and workers in network namespaces with names of their own."""

from __future__ import annotations

import contextlib
import functools
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.kept import Kept
from tests.support.network_namespaces import network
from tests.support.processes import Family, clean_environment
from tests.support.ray_nodes import TOKEN
from tests.support.service import START_SECONDS, free_port
from tests.support.waiting import wait_for

_ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": TOKEN,
    "RAY_USAGE_STATS_ENABLED": "0",
    # As in docker-compose.yml: a machine that does not answer is lost after 15 s.
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
}


class Machine:
    """A host of one main process, which is started again when it ends as long as the machine has power."""

    def __init__(self, name: str, folder: Path, command: list[str]) -> None:
        self.name = name
        self._home = folder / name
        self._home.mkdir()
        self.log = folder / f"{name}.log"
        self._family = Family(self._home)
        self._main = Kept(command, clean_environment() | _ENVIRONMENT | {"HOME": str(self._home)}, self.log)

    def used(self) -> float:
        """Return the processor time of its processes, in seconds, which grows while they get on."""
        total = 0.0
        for process in self._family.living():
            with contextlib.suppress(psutil.Error):
                total += sum(process.cpu_times()[:2])
        return round(total, 1)

    def has_said(self, word: str) -> bool:
        return self.log.exists() and word in self.log.read_text()

    def power_on(self) -> None:
        self._main.start()

    def find(self, *words: str) -> list[psutil.Process]:
        """Return its processes whose command line holds all of ``words``, the oldest first."""
        return self._family.find(*words)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all of its processes."""
        self._family.send(number)

    def shut_down(self) -> None:
        """Have its main process leave in order, and see that nothing is left."""
        self._family.living()
        self._main.stop()
        wait_for(f"the end of what {self.name} left behind", lambda: not self._family.living())

    def power_off(self) -> None:
        """Kill all of its processes."""
        self._main.stop(signal.SIGKILL)

        def is_gone() -> bool:
            self.send(signal.SIGKILL)
            return not self._family.living()

        wait_for(f"the end of {self.name}", is_gone)


@dataclass(frozen=True, slots=True)
class MachineCluster:
    """``environment`` is what a service needs to join."""

    head: Machine
    workers: tuple[Machine, ...]
    environment: dict[str, str]


@contextlib.contextmanager
def machine_cluster(*names: str) -> Iterator[MachineCluster]:
    """Start a head, which takes no work, and a worker of each name; at the end leave nothing behind."""
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="rm"))  # a short path: Ray's sockets lie below it
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        net = stack.enter_context(network(len(names)))
        port = free_port()
        address = f"{net.address}:{port}"
        head = Machine("head", folder, _head(net.address, port, folder))
        workers = [
            Machine(name, folder, namespace.command(*_host(address, name)))
            for name, namespace in zip(names, net.namespaces, strict=True)
        ]
        for machines, word in (((head,), "Ray runtime started"), (workers, "joined")):
            for machine in machines:
                stack.callback(machine.power_off)
                machine.power_on()
            for machine in machines:
                has_said = functools.partial(machine.has_said, word)
                wait_for(f"{machine.name}, see {machine.log}", has_said, START_SECONDS, progress=machine.used)
        yield MachineCluster(head, tuple(workers), {**_ENVIRONMENT, "LOOPWRIGHT_RAY_ADDRESS": address})


def _head(address: str, port: int, folder: Path) -> list[str]:
    """Ray looks for other clusters of this port among all processes, and would take those of the workers for one."""
    return [
        *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *(str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--num-cpus=0"),
        *(f"--node-ip-address={address}", f"--port={port}", f"--temp-dir={folder}"),
        *("--include-dashboard=false", "--min-worker-port=0", "--max-worker-port=0"),
    ]


def _host(address: str, name: str) -> list[str]:
    return [sys.executable, "-m", "workers.host", f"--address={address}", f"--name={name}", "--sandbox=prefer"]

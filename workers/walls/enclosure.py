"""The walls around one warm child: its command is wrapped outside, and each of its forks is restricted inside."""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from workers.walls import bubblewrap, landlock, syscalls
from workers.walls.levels import Level
from workers.walls.paths import device_nodes, readable

_PROCESSES = 2048
"""Of all forks of a child, threads included, which namespaces count apart from the user's other processes. Not tuned:
two pools of threads on the largest hosts."""


@dataclass(frozen=True, slots=True)
class Enclosure:
    """``readable`` and ``devices`` are paths; ``programs``: the forks may start programs.

    ``network``: the forks may connect to other machines by TCP.
    """

    level: Level
    readable: tuple[str, ...]
    devices: tuple[str, ...]
    programs: bool
    network: bool = False

    @property
    def scratch(self) -> str | None:
        """The folder for requests that exists inside alone; None if they need one on disk."""
        return f"{bubblewrap.SCRATCH}/request" if self.level is Level.NAMESPACES else None

    def writable(self, scratch: str) -> str:
        """Return the folder in which alone a request can have written: ``scratch``, or what holds it inside."""
        return bubblewrap.SCRATCH if self.level is Level.NAMESPACES else scratch

    def command(self, argv: Sequence[str], folder: Path) -> list[str]:
        """Return the command that runs ``argv`` in ``folder`` within the namespaces, if there are any."""
        if self.level is not Level.NAMESPACES:
            return list(argv)
        return bubblewrap.command(
            argv, readable=self.readable, devices=self.devices, folder=str(folder), network=self.network
        )

    def prepare(self) -> Callable[[str], None]:
        """Return the function that puts up the walls in a fork, for good: it may write in the given folder alone."""
        if self.level is Level.NONE:
            return lambda scratch: None
        refuse = syscalls.prepare(programs=self.programs, gpus=bool(self.devices), network=self.network)
        restrict = None
        if self.level is Level.LANDLOCK or landlock.obstacle() is None:
            restrict = landlock.prepare(readable=self.readable, devices=self.devices, network=self.network)

        def enter(scratch: str) -> None:
            if self.level is Level.NAMESPACES:
                resource.setrlimit(resource.RLIMIT_NPROC, (_PROCESSES, _PROCESSES))
            if restrict is not None:
                restrict(scratch)
            refuse()

        return enter


def enclose(
    level: Level,
    modules: Sequence[str],
    libraries: Sequence[str],
    *,
    programs: bool,
    devices: bool,
    network: bool = False,
) -> Enclosure:
    """Return the walls for a child that imports ``modules`` and loads libraries from ``libraries`` (see `readable`)."""
    return Enclosure(
        level,
        tuple(readable(modules, libraries)),
        tuple(device_nodes()) if devices else (),
        programs,
        network,
    )

"""The paths that a process behind walls may read: the system's programs and libraries, Python and our code; no data.

Paths are given by the process outside, which knows where it runs; both kinds of walls let the same paths through.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from loopwright.codegen.host import lock as host_lock

CHECKOUT = Path(__file__).resolve().parents[2]
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", "/sys")
_DEVICES = "nvidia*"


def readable(modules: Iterable[str], libraries: Iterable[str] = ()) -> list[str]:
    """Return the files and folders of the system, of Python, of the host's lock, and of the packages of ``modules``.

    And of ``libraries``, each a list of folders as in PATH. Not the whole checkout: beside the code there may be a file
    of secrets for docker-compose.
    """
    packages = {"client", "tuner", "workers", *(name.partition(".")[0] for name in modules)}
    wanted = [
        *_SYSTEM,
        sys.prefix,
        sys.base_prefix,
        *_installations(),
        *(str(CHECKOUT / package) for package in sorted(packages)),
        str(host_lock.made_directory()),
        *(folder for folders in libraries for folder in folders.split(os.pathsep) if folder),
    ]
    return [path for path in dict.fromkeys(wanted) if os.path.exists(path)]


def _installations() -> Iterator[str]:
    """Yield the folders of Python that the interpreter's path leads through, link by link."""
    path = sys.executable
    while os.path.islink(path):
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        yield str(Path(path).parents[1])


def device_nodes() -> list[str]:
    """Return the nodes of this machine's GPUs."""
    return sorted(str(node) for node in Path("/dev").glob(_DEVICES))

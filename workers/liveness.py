"""Noticing that Ray has died: calls into a dead Ray may hang, and its own limits are a minute and more."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import ray

_LOOK_SECONDS = 1.0
_CONNECT_SECONDS = 2.0
_LISTENS = 0x10000
"""Flag of a socket in /proc/net/unix (``__SO_ACCEPTCON``)."""
LOST_SECONDS = 6.0
"""Without a connection for so long, a process counts as lost. The kernel accepts connections however busy it is."""


def watch_ray(lost: Callable[[str], object]) -> None:
    """Call ``lost`` with the reason, in a thread, once the raylet of this process or the cluster's GCS has died."""
    node = ray._private.worker._global_node
    host, _, port = node.gcs_address.rpartition(":")
    watch("Ray's GCS", (host.strip("[]"), int(port)), lost)
    watch("the raylet of this machine", Path(node.raylet_socket_name), lost)


def watch(name: str, address: tuple[str, int] | Path, lost: Callable[[str], object]) -> None:
    """Call ``lost`` with the reason, in a thread, once nobody listens at an address of TCP or a socket's path."""

    def look() -> None:
        answered = time.monotonic()
        while True:
            try:
                _connect(address)
                answered = time.monotonic()
            except OSError as error:
                if time.monotonic() - answered > LOST_SECONDS:
                    lost(f"{name} does not answer at {_text(address)} ({error})")
                    return
            time.sleep(_LOOK_SECONDS)

    threading.Thread(target=look, name=f"watch {name}", daemon=True).start()


def _connect(address: tuple[str, int] | Path) -> None:
    """Raises OSError if nobody listens at the address."""
    if isinstance(address, Path):
        _require_listener(address)
    else:
        socket.create_connection(address, _CONNECT_SECONDS).close()


def _require_listener(path: Path) -> None:
    """Look into the kernel's list: a raylet writes a line into its log for every connection that says nothing."""
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        _, _, _, flags, _, _, _, *name = line.split(maxsplit=7)
        if name == [str(path)] and int(flags, 16) & _LISTENS:
            return
    raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens")


def _text(address: tuple[str, int] | Path) -> str:
    return str(address) if isinstance(address, Path) else f"{address[0]}:{address[1]}"

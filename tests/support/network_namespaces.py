"""Machines as far as the network can tell: namespaces of this host, each with an address, joined by a switch."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

_ADDRESSES = ipaddress.ip_network("198.18.0.0/15")
"""Those of test networks (RFC 2544)."""
_BLOCKS = 2**13
"""Of 16 addresses, one for each process that runs tests."""


@dataclass(frozen=True, slots=True)
class Namespace:
    name: str
    address: str

    def command(self, *command: str) -> list[str]:
        """Return what runs a command in here; the process is the command's own."""
        return ["ip", "netns", "exec", self.name, *command]


@dataclass(frozen=True, slots=True)
class Network:
    """``address`` is that of this host, by which the namespaces reach it."""

    address: str
    namespaces: tuple[Namespace, ...]


@contextlib.contextmanager
def network(size: int) -> Iterator[Network]:
    """Make a network of this host and ``size`` namespaces, and take it down at the end.

    The bridge is in a namespace of its own: a firewall of the host does not meet what the machines send each other.
    """
    run = f"lw{os.getpid()}"
    block = 16 * (os.getpid() % _BLOCKS)
    addresses = [str(_ADDRESSES[block + 1 + host]) for host in range(1 + size)]
    namespaces = tuple(Namespace(f"{run}-{number}", address) for number, address in enumerate(addresses[1:]))
    with contextlib.ExitStack() as made:
        switch = _namespace(made, f"{run}-switch")
        _ip("-netns", switch, "link", "add", "switch", "up", "type", "bridge")
        _plug(switch, run, None, addresses[0])
        made.callback(_ip, "link", "delete", run)
        for namespace in namespaces:
            _namespace(made, namespace.name)
            _plug(switch, "switch0", namespace.name, namespace.address)
            # Ray asks the kernel which address it would use to reach the world.
            _ip("-netns", namespace.name, "route", "add", "default", "via", addresses[0])
        yield Network(addresses[0], namespaces)


def what_is_missing() -> str | None:
    """Return why namespaces cannot be made here, or None if they can."""
    if shutil.which("ip") is None:
        return "there is no command ip: install iproute2"
    name = f"lw{os.getpid()}-try"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if done.returncode != 0:
        return f"network namespaces need root with CAP_SYS_ADMIN and CAP_NET_ADMIN: {done.stderr.strip()}"
    _ip("netns", "delete", name)
    return None


def _namespace(made: contextlib.ExitStack, name: str) -> str:
    """Make a namespace that goes, with its end of each cable, when ``made`` is closed."""
    _ip("netns", "add", name)
    made.callback(_ip, "netns", "delete", name)
    _ip("-netns", name, "link", "set", "lo", "up")
    return name


def _plug(switch: str, device: str, namespace: str | None, address: str) -> None:
    """Connect a namespace, or this host if it is None, with the switch."""
    port = f"port{address.rpartition('.')[2]}"
    peer = ["netns", namespace] if namespace else ["netns", str(os.getpid())]
    _ip("-netns", switch, "link", "add", port, "up", "master", "switch", "type", "veth", "peer", "name", device, *peer)
    inside = ["-netns", namespace] if namespace else []
    _ip(*inside, "address", "add", f"{address}/28", "dev", device)
    _ip(*inside, "link", "set", device, "up")


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr.strip()}"

"""Checks before a host joins: the head answers and has the same versions, and the host has devices."""

from __future__ import annotations

import platform
import socket
from dataclasses import dataclass

import ray

from loopwright.codegen import worker_labels
from loopwright.codegen.kinds import SandboxLevel
from loopwright.codegen.machine.names import machine_name
from workers.child import child_calls
from workers.child.warm_child import ChildError
from workers.host import head
from workers.host.errors import CannotJoin, HeadAway
from workers.host.options import HostOptions, split
from workers.messages import DetectedDevice
from workers.ray import fleet_versions
from workers.walls.levels import NoWalls, Policy, choose

_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Offering:
    """The devices that this machine offers."""

    devices: list[DetectedDevice]
    sandbox: SandboxLevel

    @property
    def builders(self) -> int:
        return next(device.device_class.cores for device in self.devices if device.name == "cpu")


def offering(options: HostOptions) -> Offering:
    """Return what this machine can do. Raises CannotJoin if it can put up no walls, or its devices are not found."""
    try:
        sandbox = choose(options.walls)
        devices = child_calls.detect_devices()
    except NoWalls as error:
        setting, option = f"set LOOPWRIGHT_SANDBOX={Policy.PREFER}", f"give --sandbox {Policy.PREFER}"
        raise CannotJoin(str(error).replace(setting, option)) from None
    except ChildError as error:
        raise CannotJoin(f"the devices of this machine could not be found: {error}") from None
    return Offering(devices, sandbox)


def check_head(options: HostOptions) -> None:
    """Check that a host with these options may join. Raises CannotJoin, or HeadAway if the head does not answer."""
    address = options.address
    try:
        socket.create_connection(split(address), _CONNECT_SECONDS).close()
    except socket.gaierror:
        raise HeadAway(f"there is no host {split(address)[0]}; --address takes the host of Ray's head") from None
    except OSError as error:
        raise HeadAway(
            f"nothing answers at {address} ({error.strerror or 'in time'}); is Ray's head running there, and does a "
            "firewall let this machine through?"
        ) from None
    found = head.ask(options)
    own_ray, own_python = ray.__version__, platform.python_version()
    if (found.ray, found.python) != (own_ray, own_python):
        raise CannotJoin(
            f"{address} has Ray {found.ray} on Python {found.python}, and this machine Ray {own_ray} on Python "
            f"{own_python}; all hosts of a cluster need the same"
        )
    if found.announced not in (None, own := fleet_versions.own()):
        raise CannotJoin(
            f"the service has {found.announced}, and this machine {own}; take scripts/worker, or the image, of the "
            "service's release"
        )
    if options.name in found.hosts:
        raise HeadAway(
            f"a host named {options.name} is in the fleet already; give this one another --name, or, if it is this "
            "one from before, try again in a minute"
        )


def lines(options: HostOptions, offer: Offering) -> list[str]:
    """Return the host's offer as lines for people."""
    found = [
        f"offers {options.name}/{device.name}: {machine_name(each.model, each.target_json)}, {each.threads} "
        f"{'thread' if each.threads == 1 else 'threads'}, device class {each.id}"
        for device, each in ((device, device.device_class) for device in offer.devices)
    ]
    found.append(f"builders: {offer.builders}; sandbox: {offer.sandbox}")
    if options.labels:
        found.append(f"labels: {worker_labels.text(options.labels)}")
    return found


def versions() -> str:
    return f"Ray {ray.__version__}, Python {platform.python_version()}, {fleet_versions.own()}"

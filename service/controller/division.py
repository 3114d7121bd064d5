"""How the controllers of a fleet divide its devices: by the order of the jobs of all of them, wherever a job runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from db.device_leases import Device
from db.inputs import Demand

PATIENCE_SECONDS = 10.0
"""A job whose controller has had no device for so long is first, for one device. Not tuned."""


def divide(devices: Sequence[Device], demands: Mapping[str, Sequence[Demand]]) -> dict[str, str]:
    """Return the controller of each device that any wants; all controllers come to the same division.

    Jobs are served by priority, then those with the least left, each with as many devices as it can use. What is left
    stays with controllers that can use more, or goes to the first of them. A job takes devices that its controller
    has, then free ones, then those of the controller that has the most.
    """
    left = _Left(devices)
    divided: dict[str, str] = {}
    in_order = sorted(
        ((_rank(demand), owner, number, demand) for owner, own in demands.items() for number, demand in enumerate(own))
    )
    for rank, owner, _, demand in in_order:
        count = 1 if rank[0] == 0 else demand.devices
        divided |= dict.fromkeys(left.take(demand.kinds, owner, count), owner)
    for _, owner, _, demand in in_order:
        divided |= dict.fromkeys(left.keep(demand.kinds, owner), owner)
    for _, owner, _, demand in in_order:
        divided |= dict.fromkeys(left.take(demand.kinds, owner, len(devices)), owner)
    return divided


def _rank(demand: Demand) -> tuple[int, int, float]:
    """Return what is smaller for a job that is served earlier."""
    waits = demand.waited >= PATIENCE_SECONDS
    return (0, 0, -demand.waited) if waits else (1, -demand.priority, demand.seconds)


class _Left:
    """Devices that nobody was given yet."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._ids: dict[str, dict[str | None, list[str]]] = defaultdict(lambda: defaultdict(list))
        """By kind and by the controller that has them, None if nobody does; the first ones last."""
        for device in sorted(devices, key=lambda device: device.id, reverse=True):
            self._ids[device.kind][device.leased_to].append(device.id)

    def take(self, kinds: Sequence[str], owner: str, count: int) -> list[str]:
        """Return up to so many devices for a controller."""
        taken: list[str] = []
        for choose in (self._own, self._free, self._others):
            while len(taken) < count and (ids := choose(kinds, owner)):
                more = count - len(taken)
                taken += reversed(ids[-more:])
                del ids[-more:]
        return taken

    def keep(self, kinds: Sequence[str], owner: str) -> list[str]:
        """Return the devices that a controller has."""
        return [id for kind in kinds for id in self._ids[kind].pop(owner, ())]

    def _own(self, kinds: Sequence[str], owner: str) -> list[str] | None:
        return next((ids for kind in kinds if (ids := self._ids[kind][owner])), None)

    def _free(self, kinds: Sequence[str], owner: str) -> list[str] | None:
        return next((ids for kind in kinds if (ids := self._ids[kind][None])), None)

    def _others(self, kinds: Sequence[str], owner: str) -> list[str] | None:
        return max((ids for kind in kinds for ids in self._ids[kind].values() if ids), key=len, default=None)

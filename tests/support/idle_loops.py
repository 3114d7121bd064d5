"""A cluster of one machine and loops that do nothing, for tests of what a controller claims and puts back."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from db.views import ClaimedJob
from service.controller.loops import Loop, Loops
from tests.support.played_fleet import MACHINE
from tuner.types import DeviceClass
from workers.child.search_children import SearchChildren
from workers.ray.cluster import Cluster, Offer
from workers.ray.crew import Crew
from workers.walls.levels import Level, Policy


class OneNode(Cluster):
    """``machines`` are there from the start, and answer no question; each has ``labels``."""

    def __init__(self, *machines: DeviceClass) -> None:
        super().__init__(Policy.OFF)
        self.machines = machines or (MACHINE,)
        self.labels: dict[str, str] = {}

    def reconcile(self, timeout: float = 0.0) -> list[Offer]:
        return [
            Offer(
                id=f"host/{number}",
                host="host",
                device="cpu",
                device_class=machine,
                sandbox=Level.NONE,
                system="system",
                measurer=f"measurer {number}",
                builders={"builder": 1},
                host_target='{"kind": "llvm"}',
                labels=self.labels,
            )
            for number, machine in enumerate(self.machines)
        ]

    def activity(self, timeout: float) -> dict[str, Any]:
        return {}

    def present(self, offers: Iterable[Offer]) -> list[Offer]:
        return list(offers)

    def measurer(self, offer: Offer) -> None:
        return None


class NoSearches(SearchChildren):
    """No child."""

    def __init__(self) -> None:
        pass

    @contextlib.contextmanager
    def one(self) -> Iterator[Any]:
        yield None


class IdleLoops(Loops):
    """Loops that last until their jobs are put back. ``started`` are the jobs' names, in order."""

    def __init__(self, places: int = 12) -> None:
        self._places = places
        self._loops: list[Loop] = []
        self.started: list[str] = []

    def start(self, claimed: ClaimedJob, crew: Crew, serving: Callable[[], Crew]) -> None:
        self.started.append(claimed.job.name)
        self._loops.append(Loop(claimed, crew, time.monotonic()))

    def ended(self) -> list[Loop]:
        self._loops = [loop for loop in self._loops if not loop.leaving]
        return []

    def join(self, seconds: float) -> None:
        pass

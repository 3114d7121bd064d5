"""Devices that only take time: a measurement occupies one of them for so many seconds, whichever job it is of."""

from __future__ import annotations

import hashlib
import heapq
import threading
import time
from collections.abc import Sequence

from loopwright.codegen.kinds import SandboxLevel
from tuner.errors import RaceFailed
from tuner.ports import Meanwhile, MeasureRequest, Raced, RaceRequest, RaceResult, one_by_one
from tuner.types import Failure, Measured, Outcome

WORKER = "simulated"
IN_FLIGHT = 12
"""Candidates that each job has on its way. With 50 jobs that is three for each of 200 devices."""


class Devices:
    """Shared by the fleets of all jobs. ``resize`` before a new measurement of their use."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._free: list[float] = []

    def resize(self, count: int) -> None:
        """Have so many devices from now on, free as soon as their measurements end."""
        with self._lock:
            now = time.monotonic()
            kept = sorted(self._free)[:count]
            self._free = kept + [now] * (count - len(kept))
            heapq.heapify(self._free)

    def measure(self) -> float:
        """Take a device as soon as one is free; return when the measurement ends, by the monotonic clock."""
        with self._lock:
            ends = max(time.monotonic(), heapq.heappop(self._free)) + self.seconds
            heapq.heappush(self._free, ends)
            return ends


class DeviceFleet:
    """See `tuner.ports.Fleet`. A program's latency is drawn from its text, so that it costs nothing to tell."""

    slots = IN_FLIGHT

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._waiting: list[tuple[float, str, str]] = []
        """When each measurement ends, its key and its trace."""

    def submit(self, request: MeasureRequest) -> None:
        heapq.heappush(self._waiting, (self._devices.measure(), request.key, request.trace_json or ""))

    def collect(self, timeout: float) -> list[tuple[str, Outcome]]:
        if not self._waiting:
            return []
        time.sleep(max(0.0, min(timeout, self._waiting[0][0] - time.monotonic())))
        now = time.monotonic()
        ended: list[tuple[str, Outcome]] = []
        while self._waiting and self._waiting[0][0] <= now:
            _, key, trace_json = heapq.heappop(self._waiting)
            ended.append((key, Measured(_samples(trace_json), WORKER)))
        return ended

    def forward(self) -> None:
        """Nothing is built."""

    def prepare(self, module_json: str) -> None:
        """Nothing is built for races."""

    def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        contenders: dict[str, Raced | Failure] = {
            key: Raced(_samples(trace), 0.0, 0.0) for key, trace in request.contenders.items()
        }
        return RaceResult(Raced(_samples(""), 0.0, 0.0), contenders, sandbox=SandboxLevel.NONE, system="played")

    def race_all(self, requests: Sequence[RaceRequest], meanwhile: Meanwhile) -> list[RaceResult | RaceFailed]:
        return one_by_one(self.race, requests, meanwhile)

    def abandon(self) -> None:
        self._waiting.clear()


def _samples(trace_json: str) -> tuple[float, ...]:
    drawn = int.from_bytes(hashlib.sha256(trace_json.encode()).digest()[:4], "big") / 2**32
    return tuple((1e-4 + 1e-3 * drawn) * noise for noise in (1.0, 1.01, 0.99))

"""A CUDA device for tests without one: the backend of a measurer in place of `workers.device.timing`.

A program's latency follows from its source, and so the same program is as fast on every call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from loopwright.codegen.kinds import ThrottleReason
from tuner.ports import Raced
from tuner.types import DeviceState
from workers.entry import entry
from workers.messages import (
    Artifact,
    ArtifactFormat,
    BuiltRace,
    Device,
    MeasureBatch,
    MeasureProgress,
    RaceAnswer,
    Samples,
)

ROUNDS = 9
MEASURED_STATE = DeviceState(1980, 2619, 61, 412, (ThrottleReason.POWER_CAP,))
RACED_STATE = DeviceState(1755, 2619, 74, 398, ())


def latency(artifact: Artifact) -> float:
    """Return seconds per call, between 50 and 150 microseconds."""
    digest = hashlib.sha256(artifact.code.encode()).digest()
    return 1e-6 * (50 + 100 * digest[0] / 255)


@entry
def measure(device: Device, batch: MeasureBatch) -> Iterator[MeasureProgress]:
    assert device.kind == "cuda"
    for position, candidate in enumerate(batch.candidates):
        assert "__global__ void" in candidate.code.code
        yield MeasureProgress(position, Samples((latency(candidate.code),) * 5, MEASURED_STATE))


@entry
def race(device: Device, race: BuiltRace) -> Iterator[RaceAnswer]:
    assert race.reference.format is ArtifactFormat.SHARED_LIBRARY  # for the host
    contenders = [
        Raced(tuple(latency(artifact) * (1 + 0.001 * number) for number in range(ROUNDS)), 0.0, 0.0)
        for artifact in race.contenders
    ]
    yield RaceAnswer(tuple(contenders), None, RACED_STATE)

"""Calls of the actors of `workers.actors`, typed: the only file that names their methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import ray

from tuner.types import Failure
from workers.messages import (
    Artifact,
    BuildAnswer,
    BuilderStatus,
    BuildRequest,
    BuiltRace,
    DeviceSpeed,
    MeasureAnswer,
    MeasureBatch,
    MeasurerStatus,
    RaceAnswer,
    result_from_json,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pending(Generic[T]):
    """An answer for which an actor works; ``reference`` is what `ray.wait` takes."""

    reference: Any
    read: Callable[[Any], T]

    def result(self) -> T:
        """Wait for the answer. Raises RayError if the actor was lost."""
        return self.read(ray.get(self.reference))


def build(builder: Any, request: BuildRequest, *, seconds: float) -> Pending[BuildAnswer]:
    """Build; ``seconds`` is a deadline if it is shorter than the builder's own."""
    return Pending(builder.build.remote(request.to_json(), seconds), BuildAnswer.from_json)


def build_artifact(builder: Any, request: BuildRequest) -> Pending[Artifact | Failure]:
    """Build, with the builder's own deadline."""
    return Pending(builder.build.remote(request.to_json()), lambda answer: BuildAnswer.from_json(answer).result)


def measure(measurer: Any, batch: MeasureBatch) -> Pending[list[MeasureAnswer]]:
    """Measure; the answers have the order of the batch."""
    return Pending(
        measurer.measure.remote(batch.to_json()), lambda answers: [MeasureAnswer.from_json(each) for each in answers]
    )


def race(measurer: Any, race: BuiltRace) -> Pending[RaceAnswer | Failure]:
    return Pending(measurer.race.remote(race.to_json()), lambda answer: result_from_json(answer, RaceAnswer.from_json))


def check(measurer: Any, target_json: str) -> Pending[DeviceSpeed | Failure]:
    """Time the reference kernel's multiply-adds."""
    return Pending(measurer.check.remote(target_json), _speed)


def peaks(measurer: Any, target_json: str) -> Pending[DeviceSpeed | Failure]:
    """Time the reference kernels: multiply-adds and copy."""
    return Pending(measurer.peaks.remote(target_json), _speed)


def _speed(answer: Any) -> DeviceSpeed | Failure:
    return result_from_json(answer, DeviceSpeed.from_json)


def builder_status(builder: Any) -> Pending[BuilderStatus]:
    return Pending(builder.status.remote(), BuilderStatus.from_json)


def measurer_status(measurer: Any) -> Pending[MeasurerStatus]:
    return Pending(measurer.status.remote(), MeasurerStatus.from_json)

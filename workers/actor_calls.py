"""Calls of the actors of `workers.actors`, typed: the only file that names their methods.

``caller`` is a name by which whoever made a call can `stop` it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import ray

from tuner.ports import Meanwhile
from tuner.types import Failure
from workers.boards.messages import DetectedBoard
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
    ModelProgram,
    ModelTimes,
    SandboxedRace,
    result_from_json,
)

T = TypeVar("T")
_MEANWHILE_SECONDS = 0.05
"""Not tuned."""


@dataclass(frozen=True, slots=True)
class Pending(Generic[T]):
    """An answer for which an actor works; ``reference`` is what `ray.wait` takes."""

    reference: Any
    read: Callable[[Any], T]

    def result(self) -> T:
        """Wait for the answer. Raises RayError if the actor was lost."""
        return self.read(ray.get(self.reference))

    def awaited(self, meanwhile: Meanwhile) -> T:
        """Wait for the answer like `result`, and call ``meanwhile``."""
        while not ray.wait([self.reference], timeout=_MEANWHILE_SECONDS)[0]:
            meanwhile()
        return self.result()

    def cancel(self) -> None:
        """Take the call back, if the actor has not begun it; `stop` ends it otherwise."""
        ray.cancel(self.reference)


def build(builder: Any, request: BuildRequest, *, caller: str, seconds: float) -> Pending[BuildAnswer]:
    """Build; ``seconds`` is a deadline if it is shorter than the builder's own."""
    return Pending(builder.build.remote(request.to_json(), caller, seconds), BuildAnswer.from_json)


def build_artifact(builder: Any, request: BuildRequest, *, caller: str) -> Pending[Artifact | Failure]:
    """Build, with the builder's own deadline."""
    return Pending(builder.build.remote(request.to_json(), caller), lambda answer: BuildAnswer.from_json(answer).result)


def measure(measurer: Any, batch: MeasureBatch, *, caller: str) -> Pending[list[MeasureAnswer]]:
    """Measure; the answers have the order of the batch."""
    return Pending(
        measurer.measure.remote(batch.to_json(), caller),
        lambda answers: [MeasureAnswer.from_json(each) for each in answers],
    )


def race(measurer: Any, race: BuiltRace, *, caller: str) -> Pending[SandboxedRace | Failure]:
    return Pending(
        measurer.race.remote(race.to_json(), caller), lambda answer: result_from_json(answer, SandboxedRace.from_json)
    )


def time_model(measurer: Any, model: ModelProgram, *, caller: str) -> Pending[ModelTimes | Failure]:
    return Pending(
        measurer.time_model.remote(model.to_json(), caller),
        lambda answer: result_from_json(answer, ModelTimes.from_json),
    )


def stop(actor: Any, caller: str) -> None:
    """End the calls of ``caller`` that the actor works on, if any. Does not wait."""
    actor.stop.remote(caller)


def leave(measurer: Any) -> None:
    """Have the measurer's status say that its host leaves. Does not wait."""
    measurer.leave.remote()


def check(measurer: Any, target_json: str) -> Pending[DeviceSpeed | Failure]:
    """Time the reference kernel's multiply-adds."""
    return Pending(measurer.check.remote(target_json), _speed)


def peaks(measurer: Any, target_json: str) -> Pending[DeviceSpeed | Failure]:
    """Time the reference kernels: multiply-adds and copy."""
    return Pending(measurer.peaks.remote(target_json), _speed)


def _speed(answer: Any) -> DeviceSpeed | Failure:
    return result_from_json(answer, DeviceSpeed.from_json)


def describe_board(measurer: Any) -> Pending[DetectedBoard | Failure]:
    """Ask the measurer of a board what the board is, or why it cannot be used."""
    return Pending(measurer.describe.remote(), lambda answer: result_from_json(answer, DetectedBoard.from_json))


def builder_status(builder: Any) -> Pending[BuilderStatus]:
    return Pending(builder.status.remote(), BuilderStatus.from_json)


def measurer_status(measurer: Any) -> Pending[MeasurerStatus]:
    return Pending(measurer.status.remote(), MeasurerStatus.from_json)

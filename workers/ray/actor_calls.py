"""The methods of the actors of `workers.ray.actors`: the only file that names them.

Every call that takes long has the name of a ``caller``, by which whoever made it can `stop` it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, TypeVarTuple

import ray

from tuner.codec import decode, encode
from tuner.ports import Meanwhile
from tuner.types import Failure
from workers.board_messages import DetectedBoard
from workers.messages import (
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
    RaceAnswer,
)

T = TypeVar("T")
U = TypeVar("U")
In = TypeVarTuple("In")
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

    def then(self, change: Callable[[T], U]) -> Pending[U]:
        """Return the same with the answer changed."""
        return Pending(self.reference, lambda answer: change(self.read(answer)))

    def cancel(self) -> None:
        """Take the call back, if the actor has not begun it; `stop` ends it otherwise."""
        ray.cancel(self.reference)


@dataclass(frozen=True)
class Method(Generic[T, *In]):
    """A method of an actor, which takes values of the types ``In``, and returns one of the type ``answer``."""

    name: str
    answer: Any

    def __call__(self, actor: Any, *arguments: *In) -> Pending[T]:
        call = getattr(actor, self.name).remote(*map(encode, arguments))
        return Pending(call, lambda answer: decode(self.answer, answer))


# A build's last argument is a deadline in seconds if it is shorter than the builder's own.
BUILD = Method[BuildAnswer, BuildRequest, str, float]("build", BuildAnswer)
# In the order of the batch.
MEASURE = Method[list[MeasureAnswer], MeasureBatch, str]("measure", list[MeasureAnswer])
RACE = Method[RaceAnswer | Failure, BuiltRace, str]("race", RaceAnswer | Failure)
TIME_MODEL = Method[ModelTimes | Failure, ModelProgram, str]("time_model", ModelTimes | Failure)
# Of a target: the reference kernel's multiply-adds, or with the copy.
CHECK = Method[DeviceSpeed | Failure, str]("check", DeviceSpeed | Failure)
PEAKS = Method[DeviceSpeed | Failure, str]("peaks", DeviceSpeed | Failure)
DESCRIBE_BOARD = Method[DetectedBoard | Failure]("describe", DetectedBoard | Failure)
BUILDER_STATUS = Method[BuilderStatus]("status", BuilderStatus)
MEASURER_STATUS = Method[MeasurerStatus]("status", MeasurerStatus)


def stop(actor: Any, caller: str) -> None:
    """End the calls of ``caller`` that the actor works on, if any. Does not wait."""
    actor.stop.remote(caller)


def leave(measurer: Any) -> None:
    """Have the measurer's status say that its host leaves. Does not wait."""
    measurer.leave.remote()

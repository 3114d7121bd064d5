"""The functions that run in warm children: the only file of the workers that names them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, TypeVarTuple

from loopwright.codegen.kinds import FailureKind, Stage
from tuner.codec import Malformed, decode
from tuner.types import Failure
from workers.board_messages import DescribedBoard, DetectedBoard, Link, ReferenceResults, Temperature
from workers.child.warm_child import Arguments, ChildError, ChildMalformed, Ending, WarmChild, nothing
from workers.messages import (
    Artifact,
    BuildRequest,
    BuiltRace,
    DetectedDevice,
    Device,
    DeviceSpeed,
    MeasureBatch,
    MeasureProgress,
    ModelProgram,
    ModelTimes,
    RaceAnswer,
    ReferenceKernels,
    ReferenceRequest,
    Samples,
)
from workers.walls.levels import Level

DETECT_SECONDS = 60.0
"""Not tuned: CUDA's initialisation takes some seconds on a host with several GPUs."""
KILLED = "its process was killed from outside (signal 9); perhaps the machine was short of memory"
T = TypeVar("T")
In = TypeVarTuple("In")

log = logging.getLogger("loopwright.children")


@dataclass(frozen=True)
class Call(Generic[T, *In]):
    """A function in a child, which takes values of the types ``In``, and yields some of the type ``answer``.

    ``stage`` is where on its way a candidate is that ends the function.
    """

    module: str
    function: str
    answer: Any
    stage: Stage = Stage.RUN

    def within(self, module: str) -> Call[T, *In]:
        """Return the call of another module's function: another backend of a measurer."""
        return replace(self, module=module)

    @property
    def name(self) -> str:
        """The function as a child is asked for it."""
        return f"{self.module}:{self.function}"

    def raw(self, child: WarmChild, arguments: Arguments, seconds: float, meanwhile: Callable[[], None] = nothing) -> T:
        """Return the only answer; ``seconds`` is its deadline. Raises ChildError."""
        return self.read(child.call(self.name, arguments, seconds, meanwhile))

    def stream(self, child: WarmChild, *arguments: *In, seconds: float) -> Iterator[T]:
        """Yield all answers; ``seconds`` is the deadline of each. Raises ChildError."""
        return map(self.read, child.stream(self.name, arguments, seconds))

    def tried(
        self, child: WarmChild, *arguments: *In, seconds: float, fits: Callable[[T], bool] = lambda _: True
    ) -> T | Failure:
        """Return the only answer, which is malformed unless it ``fits``, or the failure that it ended with."""
        try:
            answer = self.raw(child, arguments, seconds)
            return answer if fits(answer) else failure_of(malformed(), self.stage)
        except ChildError as error:
            return failure_of(error, self.stage)

    def read(self, answer: Any) -> T:
        """Return an answer from JSON. Raises ChildMalformed."""
        try:
            value: T = decode(self.answer, answer)
        except Malformed as error:
            log.warning("%s:%s: %s", self.module, self.function, error)
            raise malformed() from error
        return value


BUILD_CUDA = "workers.device.build_cuda"
"""The module of `BUILD`, and the intrinsics of cuda."""
FIRST_BUILD = "workers.child.first_build"

BUILD = Call[Artifact, BuildRequest]("workers.device.build", "build", Artifact, Stage.BUILD)
# In a session.
BUILD_EACH = Call[Artifact]("workers.device.build", "build_each", Artifact, Stage.BUILD)
# Of real devices; a simulated one has a module of its own.
MEASURE = Call[MeasureProgress, Device, MeasureBatch]("workers.device.timing", "measure", MeasureProgress)
RACE = Call[RaceAnswer, Device, BuiltRace]("workers.device.timing", "race", RaceAnswer, Stage.CERTIFY)
TIME_MODEL = Call[ModelTimes, Device, ModelProgram]("workers.device.whole_model", "time_model", ModelTimes)
BUILD_REFERENCE = Call[ReferenceKernels, ReferenceRequest](
    "workers.device.reference", "build", ReferenceKernels, Stage.BUILD
)
# The multiply-adds alone, or with the copy.
CHECK = Call[DeviceSpeed, Device, ReferenceKernels]("workers.device.reference", "check", DeviceSpeed)
PEAKS = Call[DeviceSpeed, Device, ReferenceKernels]("workers.device.reference", "peaks", DeviceSpeed)
DETECT = Call[list[DetectedDevice]]("workers.device.detect", "detect", list[DetectedDevice])

DESCRIBE_BOARD = Call[DetectedBoard | Failure, Link, DescribedBoard](
    "workers.boards.describe", "describe", DetectedBoard | Failure
)
TEMPERATURE = Call[Temperature, Link, str]("workers.boards.describe", "temperature", Temperature)
MEASURE_ON_BOARD = Call[Samples | Failure, Link, MeasureBatch]("workers.boards.timing", "measure", Samples | Failure)
CHECK_BOARD = Call[DeviceSpeed, Link, ReferenceKernels]("workers.boards.timing", "check", DeviceSpeed)
BOARD_PEAKS = Call[DeviceSpeed, Link, ReferenceKernels]("workers.boards.timing", "peaks", DeviceSpeed)
# On the host; the deadline is that of each kind of inputs.
REFERENCE_RESULTS = Call[ReferenceResults, BuiltRace]("workers.boards.race", "results", ReferenceResults, Stage.CERTIFY)
RACE_ON_BOARD = Call[RaceAnswer | Failure, Link, BuiltRace, list[ReferenceResults]](
    "workers.boards.race", "race", RaceAnswer | Failure, Stage.CERTIFY
)

_KINDS = {
    Ending.TIMEOUT: FailureKind.TIMEOUT,
    Ending.RAISED: FailureKind.CRASH,
    Ending.OUT_OF_MEMORY: FailureKind.CRASH,
    Ending.CRASHED: FailureKind.CRASH,
    Ending.MALFORMED: FailureKind.CRASH,
    Ending.KILLED: FailureKind.KILLED,
    Ending.LOST: FailureKind.DEVICE_LOST,
    Ending.STOPPED: FailureKind.DEVICE_LOST,
}


def detect_devices() -> list[DetectedDevice]:
    """Return this machine's devices, from a child that may initialise CUDA and die. Raises ChildError."""
    child = WarmChild([DETECT.module], level=Level.NONE)  # it meets nothing that a user sent
    try:
        return DETECT.raw(child, (), DETECT_SECONDS)
    finally:
        child.close()


def failure_of(error: ChildError, stage: Stage) -> Failure:
    """Return the failure of the program that a child worked on."""
    if error.ending in (Ending.RAISED, Ending.OUT_OF_MEMORY, Ending.CRASHED):
        log.warning("%s", error.details)
    if stage is Stage.BUILD and error.ending in (Ending.RAISED, Ending.OUT_OF_MEMORY):
        return Failure(stage, FailureKind.COMPILE, error.for_users)
    return Failure(stage, _KINDS[error.ending], KILLED if error.ending is Ending.KILLED else error.for_users)


def malformed() -> ChildMalformed:
    return ChildMalformed("its process gave an impossible answer")

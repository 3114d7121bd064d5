"""Calls of functions in warm children, typed: the only file of the workers that names a child's function.

A function that fails answers with a `Failure`; `measure` raises ChildError, because it may have yielded results before.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from typing import TypeVar

from tuner.types import Failure, FailureKind, Stage
from workers.boards.messages import DescribedBoard, DetectedBoard, Link, ReferenceResults, Temperature
from workers.error_text import first_line, for_users
from workers.messages import (
    Artifact,
    BuildRequest,
    BuiltRace,
    DetectedDevice,
    Device,
    DeviceSpeed,
    Json,
    MeasureBatch,
    MeasureFinished,
    MeasureStarted,
    Message,
    ModelProgram,
    ModelTimes,
    RaceAnswer,
    ReferenceKernels,
    ReferenceRequest,
    Samples,
    measure_progress_from_json,
    result_from_json,
)
from workers.walls.levels import Level
from workers.warm_child import ChildCrashed, ChildError, ChildRaised, ChildTimeout, WarmChild

BUILD = "workers.build"
BUILD_CUDA = "workers.build_cuda"
"""`BUILD` and the intrinsics of cuda."""
FIRST_BUILD = "workers.first_build"
REFERENCE = "workers.reference"
TIMING = "workers.timing"
"""The backend of real devices: a module with the functions ``measure`` and ``race``."""
DETECT = "workers.detect"
BOARD_DESCRIBE = "workers.boards.describe"
BOARD_TIMING = "workers.boards.timing"
BOARD_RACE = "workers.boards.race"
WHOLE_MODEL = "workers.whole_model"

DETECT_SECONDS = 60.0
"""Not tuned: CUDA's initialisation takes some seconds on a host with several GPUs."""
KILLED = "its process was killed from outside (signal 9); perhaps the machine was short of memory"
T = TypeVar("T")

log = logging.getLogger("loopwright.children")


def build(child: WarmChild, request: BuildRequest, *, seconds: float) -> Artifact | Failure:
    return _call(child, f"{BUILD}:build", {"request": request}, Stage.BUILD, seconds, Artifact.from_json)


def measure(
    child: WarmChild, backend: str, device: Device, batch: MeasureBatch, *, seconds: float
) -> Iterator[MeasureStarted | MeasureFinished]:
    """Yield the progress of a batch. ``seconds`` is the deadline of each step. Raises ChildError."""
    arguments = {"device": device.to_json(), "batch": batch.to_json()}
    return map(measure_progress_from_json, child.stream(f"{backend}:measure", arguments, seconds))


def race(child: WarmChild, backend: str, device: Device, race: BuiltRace, *, seconds: float) -> RaceAnswer | Failure:
    arguments: dict[str, Message] = {"device": device, "race": race}
    return _call(child, f"{backend}:race", arguments, Stage.CERTIFY, seconds, RaceAnswer.from_json)


def time_model(child: WarmChild, device: Device, model: ModelProgram, *, seconds: float) -> ModelTimes | Failure:
    arguments: dict[str, Message] = {"device": device, "model": model}
    return _call(child, f"{WHOLE_MODEL}:time_model", arguments, Stage.RUN, seconds, ModelTimes.from_json)


def build_reference(child: WarmChild, request: ReferenceRequest, *, seconds: float) -> ReferenceKernels | Failure:
    return _call(child, f"{REFERENCE}:build", {"request": request}, Stage.BUILD, seconds, ReferenceKernels.from_json)


def check(child: WarmChild, device: Device, kernels: ReferenceKernels, *, seconds: float) -> DeviceSpeed | Failure:
    """Time the multiply-adds only."""
    return _timed_reference(child, f"{REFERENCE}:check", device, kernels, seconds)


def peaks(child: WarmChild, device: Device, kernels: ReferenceKernels, *, seconds: float) -> DeviceSpeed | Failure:
    """Time the multiply-adds and the copy."""
    return _timed_reference(child, f"{REFERENCE}:peaks", device, kernels, seconds)


def _timed_reference(
    child: WarmChild, function: str, device: Device, kernels: ReferenceKernels, seconds: float
) -> DeviceSpeed | Failure:
    arguments: dict[str, Message] = {"device": device, "kernels": kernels}
    return _call(child, function, arguments, Stage.RUN, seconds, DeviceSpeed.from_json)


def detect_devices() -> list[DetectedDevice]:
    """Return this machine's devices, from a child that may initialise CUDA and die. Raises ChildError."""
    child = WarmChild([DETECT], level=Level.NONE)  # it meets nothing that a user sent
    try:
        return [DetectedDevice.from_json(fields) for fields in child.call(f"{DETECT}:detect", {}, DETECT_SECONDS)]
    finally:
        child.close()


def describe_board(child: WarmChild, link: Link, board: DescribedBoard, *, seconds: float) -> DetectedBoard | Failure:
    arguments: dict[str, Message] = {"link": link, "board": board}
    answer = _call(
        child,
        f"{BOARD_DESCRIBE}:describe",
        arguments,
        Stage.RUN,
        seconds,
        lambda fields: result_from_json(fields, DetectedBoard.from_json),
    )
    if isinstance(answer, Failure) and answer.kind is FailureKind.TIMEOUT:
        return Failure(Stage.RUN, FailureKind.DEVICE_LOST, f"it does not answer within {seconds:g} s")
    return answer


def board_temperature(child: WarmChild, link: Link, path: str, *, seconds: float) -> Temperature | Failure:
    try:
        fields = child.call(f"{BOARD_DESCRIBE}:temperature", {"link": link.to_json(), "path": path}, seconds)
    except ChildError as error:
        return failure_of(error, Stage.RUN)
    return Temperature.from_json(fields)


def measure_on_board(child: WarmChild, link: Link, batch: MeasureBatch, *, seconds: float) -> Samples | Failure:
    """Measure a batch of one candidate."""
    arguments: dict[str, Message] = {"link": link, "batch": batch}
    return _call(
        child,
        f"{BOARD_TIMING}:measure",
        arguments,
        Stage.RUN,
        seconds,
        lambda fields: result_from_json(fields, Samples.from_json),
    )


def check_board(child: WarmChild, link: Link, kernels: ReferenceKernels, *, seconds: float) -> DeviceSpeed | Failure:
    """Time the multiply-adds only."""
    arguments: dict[str, Message] = {"link": link, "kernels": kernels}
    return _call(child, f"{BOARD_TIMING}:check", arguments, Stage.RUN, seconds, DeviceSpeed.from_json)


def board_peaks(child: WarmChild, link: Link, kernels: ReferenceKernels, *, seconds: float) -> DeviceSpeed | Failure:
    """Time the multiply-adds and the copy."""
    arguments: dict[str, Message] = {"link": link, "kernels": kernels}
    return _call(child, f"{BOARD_TIMING}:peaks", arguments, Stage.RUN, seconds, DeviceSpeed.from_json)


def reference_results(child: WarmChild, race: BuiltRace, *, seconds: float) -> list[ReferenceResults] | Failure:
    """Run the unscheduled program on the host; ``seconds`` is the deadline for each kind of inputs."""
    try:
        answers = list(child.stream(f"{BOARD_RACE}:results", {"race": race.to_json()}, seconds))
    except ChildError as error:
        return failure_of(error, Stage.CERTIFY)
    return [ReferenceResults.from_json(fields) for fields in answers]


def race_on_board(
    child: WarmChild, link: Link, race: BuiltRace, results: list[ReferenceResults], *, seconds: float
) -> RaceAnswer | Failure:
    arguments = {"link": link.to_json(), "race": race.to_json(), "results": [each.to_json() for each in results]}
    try:
        answer = child.call(f"{BOARD_RACE}:race", arguments, seconds)
    except ChildError as error:
        return failure_of(error, Stage.CERTIFY)
    return result_from_json(answer, RaceAnswer.from_json)


def _call(
    child: WarmChild,
    function: str,
    arguments: dict[str, Message],
    stage: Stage,
    seconds: float,
    read: Callable[[Json], T],
) -> T | Failure:
    try:
        answer = child.call(function, {name: value.to_json() for name, value in arguments.items()}, seconds)
    except ChildError as error:
        return failure_of(error, stage)
    return read(answer)


def failure_of(error: ChildError, stage: Stage) -> Failure:
    """Return the failure of the program that a child worked on.

    Programs crash by SIGSEGV, SIGFPE and the like. SIGKILL comes from outside: from an operator, or from the kernel
    short of memory, which chooses the process that has most of it.
    """
    if isinstance(error, ChildTimeout):
        return Failure(stage, FailureKind.TIMEOUT, str(error))
    if isinstance(error, ChildRaised):
        log.warning("%s: %s", error.kind, error)
        kind = FailureKind.COMPILE if stage is Stage.BUILD else FailureKind.CRASH
        return Failure(stage, kind, f"{error.kind}: {for_users(str(error))}")
    if isinstance(error, ChildCrashed) and error.signal == signal.SIGKILL:
        return Failure(stage, FailureKind.KILLED, KILLED)
    if isinstance(error, ChildCrashed):
        log.warning("%s: %s", error, error.stderr)
        return Failure(stage, FailureKind.CRASH, f"{error} {first_line(error.stderr)}".strip())
    return Failure(stage, FailureKind.DEVICE_LOST, str(error))

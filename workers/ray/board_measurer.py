"""The Ray actor of a board: a measuring slot whose programs run behind TVM's RPC.

It has the methods of `workers.ray.actors.Measurer`, so that the fleet need not know which of the two it calls. A call
with which the board was lost is repeated once the board is back. If it loses the board twice, the programs are at
fault.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import psutil
import ray

from loopwright.codegen.host.threads import OMP_NUM_THREADS, environment
from loopwright.codegen.kinds import FailureKind, Stage
from tuner.codec import Json, decode, encode
from tuner.types import Failure
from workers.board_messages import DescribedBoard, DetectedBoard, Link
from workers.boards.config import Board
from workers.boards.reboot import Reboot
from workers.child import child_calls
from workers.child.warm_child import ChildError, WarmChild
from workers.messages import (
    BuiltRace,
    Candidate,
    DeviceSpeed,
    MeasureAnswer,
    MeasureBatch,
    ModelTimes,
    RaceAnswer,
    ReferenceKernels,
    ReferenceRequest,
    Samples,
)
from workers.ray.actors import CONTROL, MEASURE_SECONDS, RACE_SECONDS, built_kernels
from workers.ray.slot import Slot, Turn
from workers.walls.levels import Level, Policy, choose

DESCRIBE_SECONDS = 10.0
"""For a board to answer what it is. Not tuned."""
_PEAKS_SECONDS = 120.0
"""The copy's arrays take 128 MiB, which travel to the board."""
_RACE_SESSION_SECONDS = 1200.0
"""After which the server ends a race; each of its steps has a deadline of its own. Not tuned: 25 programs of 12 MiB of
arguments take some minutes over 100 Mbit/s."""
_SLACK_SECONDS = 5.0
"""By which a session outlives the deadline of what runs in it, so that the child says first that it is over. It is also
how long a program that hangs keeps the board busy after its deadline."""
_ANSWER_SECONDS = 30.0
"""That a lost board has to come back by itself. Not tuned."""
_POLL_SECONDS = 0.5
_MEMORY_SHARE = 0.5
"""Of the host's memory, for the data segment of each child. Not tuned."""
_KEPT_KERNELS = 8

T = TypeVar("T")

log = logging.getLogger("loopwright.rpc_devices")


@dataclass(frozen=True, slots=True)
class Limits:
    """In seconds: the deadline of a measurement, that of each step of a race, and what a lost board has to be back."""

    measure: float = MEASURE_SECONDS
    race: float = RACE_SECONDS
    answer: float = _ANSWER_SECONDS


class BoardMeasurer:
    """Measures and races on one board.

    No program of a user runs on this host but the reference of a race, in a child of its own without a network. On the
    board there are no walls.
    """

    def __init__(self, board: Json, walls: Policy, limits: Limits = Limits()) -> None:
        self._board = decode(Board, board)
        self._limits = limits
        self._slot = Slot()
        self._reboot = Reboot(self._board)
        self._level = choose(walls)
        self._system = ""
        self._threads = 1
        self._kernels: dict[str, ReferenceKernels] = {}
        """By target."""
        memory = int(_MEMORY_SHARE * psutil.virtual_memory().total)
        one_thread = {**environment(1), OMP_NUM_THREADS: "1"}
        calls = (child_calls.DESCRIBE_BOARD, child_calls.MEASURE_ON_BOARD, child_calls.RACE_ON_BOARD)
        preload = [call.module for call in calls]
        self._child = WarmChild(preload, one_thread, memory, level=self._level, network=True)
        self._host = WarmChild([child_calls.REFERENCE_RESULTS.module], one_thread, memory, busy=True, level=self._level)
        self._turn = Turn(self._child, self._host)
        self._child.start()

    @ray.method(concurrency_group=CONTROL)
    def status(self) -> Json:
        return encode(self._slot.status(Level.NONE, self._system))

    @ray.method(concurrency_group=CONTROL)
    def stop(self, caller: str) -> None:
        """End the caller's call, if it is its turn."""
        self._turn.stop(caller)

    def describe(self) -> Json:
        """Return the `DetectedBoard`, or a failure that says why the board cannot be used now."""
        found = self._described()
        if not isinstance(found, Failure):
            self._system, self._threads = found.system, found.device.device_class.threads
        return encode(found)

    def close(self) -> None:
        """End the children; without Ray, which kills the whole process."""
        self._child.close()
        self._host.close()

    def measure(self, batch: Json, caller: str) -> Any:
        """Return the `MeasureAnswer` of every candidate of a `MeasureBatch`, in order."""
        request = decode(MeasureBatch, batch)
        answers = []
        with self._slot.used(), self._turn.of(caller):
            for candidate in request.candidates:
                started = time.time()
                self._slot.trial = candidate.key
                result = self._run(Stage.RUN, self._measuring(request, candidate))
                answers.append(MeasureAnswer(result, Level.NONE, started, time.time()))
        return encode(answers)

    def _measuring(self, batch: MeasureBatch, candidate: Candidate) -> Callable[[], Samples | Failure]:
        seconds = self._limits.measure
        alone = MeasureBatch(batch.args, (candidate,))
        return lambda: child_calls.MEASURE_ON_BOARD.tried(
            self._child, link_to(self._board, seconds), alone, seconds=seconds
        )

    def race(self, race: Json, caller: str) -> Json:
        """Return the `RaceAnswer` of a `BuiltRace`, or the failure that ended the race."""
        request, seconds = decode(BuiltRace, race), self._limits.race
        with self._slot.used(), self._turn.of(caller):
            try:
                results = list(child_calls.REFERENCE_RESULTS.stream(self._host, request, seconds=seconds))
            except ChildError as error:
                return encode(child_calls.failure_of(error, Stage.CERTIFY))
            self._note_temperature("before a race")
            answer: RaceAnswer | Failure = self._run(
                Stage.CERTIFY,
                lambda: child_calls.RACE_ON_BOARD.tried(
                    self._child,
                    link_to(self._board, _RACE_SESSION_SECONDS),
                    request,
                    results,
                    seconds=seconds,
                    fits=lambda answer: isinstance(answer, Failure) or answer.answers(request),
                ),
            )
            self._note_temperature("after a race")
        if not isinstance(answer, Failure):
            answer = replace(answer, sandbox=Level.NONE, system=self._system)
        return encode(answer)

    def time_model(self, model: Json, caller: str) -> Json:
        """Return `ModelTimes` without a time: a board has no compiler, and TVM's virtual machine is not sent there."""
        return encode(ModelTimes((), "it was tuned for an RPC device, on which only single functions are timed"))

    def check(self, target_json: str) -> Json:
        """Return the `DeviceSpeed` by the multiply-adds alone, or a failure."""
        return self._speed(target_json, child_calls.CHECK_BOARD, self._limits.measure)

    def peaks(self, target_json: str) -> Json:
        """Return the `DeviceSpeed` with the copy's rate, or a failure."""
        return self._speed(target_json, child_calls.BOARD_PEAKS, _PEAKS_SECONDS)

    def _speed(
        self, target_json: str, call: child_calls.Call[DeviceSpeed, Link, ReferenceKernels], seconds: float
    ) -> Json:
        if target_json not in self._kernels:
            built = built_kernels(ReferenceRequest(target_json, self._threads), self._level)
            if isinstance(built, Failure):
                return encode(built)
            self._kernels[target_json] = built
            for other in list(self._kernels)[:-_KEPT_KERNELS]:
                del self._kernels[other]
        self._note_temperature("before the reference kernel")
        kernels = self._kernels[target_json]
        return encode(
            self._tried(lambda: call.tried(self._child, link_to(self._board, seconds), kernels, seconds=seconds))
        )

    def _run(self, stage: Stage, call: Callable[[], T | Failure]) -> T | Failure:
        """Call, and call again if that lost the board and it is back. Two losses in a row are the programs' crash."""
        failure: Failure | None = None
        for _ in range(2):
            if self._turn.stopped:
                break
            result = self._tried(call)
            if not isinstance(result, Failure) or result.kind not in (FailureKind.DEVICE_LOST, FailureKind.TIMEOUT):
                self._reboot.found()
                return result
            failure = result
            if self._turn.stopped:
                break
            if not self._is_back():
                return replace(failure, kind=FailureKind.DEVICE_LOST)
            if failure.kind is FailureKind.TIMEOUT:
                return failure
        if failure is None or self._turn.stopped:
            return Failure(stage, FailureKind.DEVICE_LOST, "the call was stopped")
        return replace(failure, kind=FailureKind.CRASH, message=f"twice in a row: {failure.message}")

    def _tried(self, call: Callable[[], T | Failure]) -> T | Failure:
        try:
            result = call()
        except OSError as error:  # the board's name cannot be looked up
            return Failure(Stage.RUN, FailureKind.DEVICE_LOST, f"{self._board.address[0]}: {error}")
        if isinstance(result, Failure) and result.kind is FailureKind.KILLED:
            # It was a process of this host, which runs nothing of the candidate.
            return replace(result, kind=FailureKind.DEVICE_LOST)
        return result

    def _is_back(self) -> bool:
        """Wait for the board to answer, after a reboot if it was lost too often. Return whether it does."""
        if self._answers_within(self._limits.answer):
            self._reboot.found()
            return True
        if self._turn.stopped:
            return False
        log.warning("RPC device %s does not answer", self._board.name)
        return self._reboot.lost() and self._answers_within(self._board.boot_seconds)

    def _answers_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not self._turn.stopped:
            if not isinstance(self._described(), Failure):
                return True
            if time.monotonic() > until:
                return False
            time.sleep(_POLL_SECONDS)
        return False

    def _described(self) -> DetectedBoard | Failure:
        board = self._board
        described = DescribedBoard(board.name, board.target_json, board.model, board.tvm)
        return self._tried(lambda: describe(self._child, link_to(board, DESCRIBE_SECONDS), described))

    def _note_temperature(self, when: str) -> None:
        path = self._board.temperature
        if path is None:
            return
        with contextlib.suppress(OSError):
            found = child_calls.TEMPERATURE.tried(
                self._child, link_to(self._board, DESCRIBE_SECONDS), path, seconds=DESCRIBE_SECONDS
            )
            if isinstance(found, Failure) or found.celsius is None:
                log.warning("RPC device %s does not say its temperature in %s", self._board.name, path)
            else:
                log.info("RPC device %s: %.1f °C %s", self._board.name, found.celsius, when)


def describe(
    child: WarmChild, link: Link, board: DescribedBoard, *, seconds: float = DESCRIBE_SECONDS
) -> DetectedBoard | Failure:
    """Ask a board what it is; one that does not answer in time is lost."""
    answer = child_calls.DESCRIBE_BOARD.tried(child, link, board, seconds=seconds)
    if isinstance(answer, Failure) and answer.kind is FailureKind.TIMEOUT:
        return replace(answer, kind=FailureKind.DEVICE_LOST, message=f"it does not answer within {seconds:g} s")
    return answer


def link_to(board: Board, seconds: float) -> Link:
    """Return the way to a board for something that takes ``seconds`` at most. Raises OSError.

    The board's name is looked up here, not behind walls.
    """
    host, port = board.address
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # TVM's server listens on IPv4 unless it is told otherwise.
    *_, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return Link(str(address[0]), port, board.is_tracker, board.key, seconds + _SLACK_SECONDS)

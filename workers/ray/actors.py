"""The Ray actors of a node: one that builds, and one a device that measures, with warm, disposable children.

Arguments and answers are the JSON of `workers.messages`; `workers.ray.actor_calls` calls the methods with typed values.
During an upgrade a controller starts these classes on nodes with older code. Ray looks all methods up there: with a
method more, it could not.
"""

from __future__ import annotations

import math
import os
import queue
import time
from dataclasses import dataclass, replace
from typing import Any

import psutil
import ray

from loopwright.codegen.host import cpu
from loopwright.codegen.host.threads import OMP_NUM_THREADS, environment, usable_cores
from loopwright.codegen.kinds import FailureKind, Stage
from tuner.codec import Json, decode, encode
from tuner.types import Failure
from workers.child import child_calls
from workers.child.build_fork import BuildFork
from workers.child.lock_watch import LockWatch
from workers.child.warm_child import ChildError, WarmChild
from workers.device.system import system
from workers.messages import (
    BuildAnswer,
    BuilderStatus,
    BuildRequest,
    BuiltRace,
    Device,
    DeviceSpeed,
    MeasureAnswer,
    MeasureBatch,
    ModelProgram,
    ReferenceKernels,
    ReferenceRequest,
)
from workers.ray.patience import measuring_seconds
from workers.ray.slot import Slot, Turn
from workers.walls.levels import Level, Policy, choose

CONTROL = "control"
"""The concurrency group of status requests, which are answered while a child works."""
BUILD_SECONDS = 60.0
"""Deadline of a build. The fleet sets a shorter one by what builds of the module took (`workers.ray.patience`); this
one limits the first builds. Not tuned."""
MEASURE_SECONDS = 30.0
"""Deadline of each step of a measurement: to load one program, or to take its samples. It is shorter if the candidates
have cutoffs (`workers.ray.patience`). Not tuned."""
RACE_SECONDS = 300.0
"""Deadline of each step of a race: one program on one set of inputs, or all timings if a round is short. Not tuned."""
MODEL_SECONDS = 120.0
"""Deadline to build a whole model, and of its timing. Not tuned."""
_BUILD_BYTES = 6 * 2**30
"""Limit on a build's data segment: a runaway compiler must not make the kernel kill other processes. Not tuned."""
_MEASURE_SHARE = 0.75
"""Of the host's memory, for the data segment of a process that runs programs; the rest is for the others. Not tuned."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one candidate at a time is built; ``label`` names it in timelines."""

    label: str
    child: WarmChild
    fork: BuildFork
    turn: Turn


class Builder:
    """Builds as many candidates at a time as there are ``places``; the actor is to have as many threads.

    The first place is ready at the start, and each other one when it is first needed.

    One process for all of them: each process of Ray takes 75 MB, and half a percent of a core while it is idle.

    Args:
        cuda: the builder is beside a GPU, and loads what cuda candidates need before they come.
        walls: around the processes that build.
        seconds: a build's deadline.
        label: the builder's name in timelines, before the number of the place.
        places: children that build; None: as many as this machine has cores.
    """

    def __init__(
        self,
        cuda: bool,
        walls: Policy,
        seconds: float = BUILD_SECONDS,
        label: str = "builder",
        places: int | None = None,
    ) -> None:
        self._seconds = seconds
        self._places = [_place(cuda, walls, f"{label} {number}") for number in range(places or usable_cores())]
        # The place that was used last is used next, so that the others may rest when there is little to do.
        self._idle: queue.LifoQueue[_Place] = queue.LifoQueue()
        for place in reversed(self._places):
            self._idle.put(place)
        self._places[0].child.start()

    @ray.method(concurrency_group=CONTROL)
    def status(self) -> Json:
        return encode(BuilderStatus(os.getpid(), sum(place.turn.caller is not None for place in self._places)))

    @ray.method(concurrency_group=CONTROL)
    def stop(self, caller: str) -> None:
        """Stop the caller's running calls."""
        for place in self._places:
            place.turn.stop(caller)

    def build(self, request: Json, caller: str, seconds: float = math.inf) -> Json:
        """Return the `BuildAnswer` of a `BuildRequest`. ``seconds`` may shorten the builder's deadline."""
        place = self._idle.get()
        started = time.time()
        try:
            with place.turn.of(caller):
                result = place.fork.build(decode(BuildRequest, request), caller, min(seconds, self._seconds))
        finally:
            self._idle.put(place)
        return encode(BuildAnswer(result, place.label, started, time.time()))


def _place(cuda: bool, walls: Policy, label: str) -> _Place:
    preload = [child_calls.BUILD_CUDA if cuda else child_calls.BUILD.module, child_calls.FIRST_BUILD]
    child = WarmChild(
        preload,
        {"TVM_NUM_THREADS": "1"},
        _BUILD_BYTES,
        busy=True,
        level=choose(walls),
        programs=True,
        devices=cuda,  # to compile for a GPU, TVM asks it for its properties, and dies if there is none
    )
    return _Place(label, child, BuildFork(child), Turn(child))


class Measurer:
    """The measuring slot of one device.

    Args:
        device: "cpu" or "cuda:N".
        threads: the number of threads of TVM's runtime.
        walls: around the process that runs programs.
        backend: the module whose ``measure`` and ``race`` run in the child; tests pass a simulated device.
        seconds: the deadline of each step of a measurement.
    """

    def __init__(
        self,
        device: str,
        threads: int,
        walls: Policy,
        backend: str = child_calls.MEASURE.module,
        seconds: float = MEASURE_SECONDS,
    ) -> None:
        self._device = Device.named(device)
        self._threads = threads
        self._backend = backend
        self._seconds = seconds
        self._slot = Slot()
        self._leaving = False
        self._reference_kernels: dict[str, ReferenceKernels] = {}
        """By target: to compile them for each timing would cost a GPU's host seconds."""
        self._level = choose(walls)
        self._child = WarmChild(
            [backend, child_calls.CHECK.module],
            {**environment(threads), OMP_NUM_THREADS: str(threads)},
            # CUDA maps far more memory than it uses.
            memory_bytes=0 if self._device.kind == "cuda" else int(_MEASURE_SHARE * psutil.virtual_memory().total),
            level=self._level,
            devices=self._device.kind == "cuda",
        )
        self._turn = Turn(self._child)
        self._child.start()
        self._lock_watch = LockWatch()
        self._lock_watch.start()

    @ray.method(concurrency_group=CONTROL)
    def status(self) -> Json:
        status = self._slot.status(self._level, system(self._device.kind))
        waits_for = None if status.since is None else self._lock_watch.other
        return encode(replace(status, leaving=self._leaving, waits_for=waits_for))

    @ray.method(concurrency_group=CONTROL)
    def leave(self) -> None:
        """Report in each status from now on that the host leaves."""
        self._leaving = True

    @ray.method(concurrency_group=CONTROL)
    def stop(self, caller: str) -> None:
        """Stop the caller's call if it is running."""
        self._turn.stop(caller)

    def measure(self, batch: Json, caller: str) -> Any:
        """Return the `MeasureAnswer` of every candidate of a `MeasureBatch`, in order."""
        request = decode(MeasureBatch, batch)
        answers: dict[int, MeasureAnswer] = {}
        with self._slot.used(), self._turn.of(caller):
            while len(answers) < len(request.candidates):
                if self._turn.stopped:
                    now = time.time()
                    lost = Failure(Stage.RUN, FailureKind.DEVICE_LOST, "the call was stopped")
                    stopped = MeasureAnswer(lost, self._level, now, now)
                    answers = dict.fromkeys(range(len(request.candidates)), stopped) | answers
                else:
                    self._measure_rest(request, answers)
        return encode([answers[position] for position in range(len(request.candidates))])

    def _measure_rest(self, batch: MeasureBatch, answers: dict[int, MeasureAnswer]) -> None:
        """Measure the candidates without an answer in one fork; a crash ends the fork, but adds an answer first."""
        rest = [position for position in range(len(batch.candidates)) if position not in answers]
        remaining = MeasureBatch(batch.args, tuple(batch.candidates[position] for position in rest))
        current: int | None = None
        since = time.time()
        measure = child_calls.MEASURE.within(self._backend)
        seconds = measuring_seconds([candidate.cutoff for candidate in remaining.candidates], self._seconds)
        try:
            for progress in measure.stream(self._child, self._device, remaining, seconds=seconds):
                if progress.position >= len(rest):
                    raise child_calls.malformed()
                current = rest[progress.position]
                if progress.result is None:
                    since = time.time()
                    self._slot.trial = batch.candidates[current].key
                else:
                    answers[current] = MeasureAnswer(progress.result, self._level, since, time.time())
        except ChildError as error:
            if current in answers:
                return
            failure = child_calls.failure_of(error, Stage.RUN)
            if current is None and failure.kind is FailureKind.KILLED:
                # While the arguments were made, which no candidate has to answer for.
                failure = replace(failure, kind=FailureKind.DEVICE_LOST)
        else:
            if answers.keys() & set(rest):
                return
            failure = Failure(Stage.RUN, FailureKind.CRASH, "the child ended without an answer")
        answers[rest[0] if current is None else current] = MeasureAnswer(failure, self._level, since, time.time())

    def race(self, race: Json, caller: str) -> Json:
        """Return the `RaceAnswer` of a `BuiltRace`, or the failure that ended the racing process."""
        request = decode(BuiltRace, race)
        call = child_calls.RACE.within(self._backend)
        with self._slot.used(), self._turn.of(caller):
            answer = call.tried(
                self._child,
                self._device,
                request,
                seconds=RACE_SECONDS,
                fits=lambda answer: answer.answers(request),
            )
        if not isinstance(answer, Failure):
            answer = replace(answer, sandbox=self._level, system=system(self._device.kind))
        return encode(answer)

    def time_model(self, model: Json, caller: str) -> Json:
        """Return the `ModelTimes` of a `ModelProgram`, or the failure that ended the process."""
        request = decode(ModelProgram, model)
        with self._slot.used(), self._turn.of(caller):
            return encode(child_calls.TIME_MODEL.tried(self._child, self._device, request, seconds=MODEL_SECONDS))

    def check(self, target_json: str) -> Json:
        """Return the `DeviceSpeed` by the multiply-adds alone, or a failure."""
        return encode(self._speed(child_calls.CHECK, target_json))

    def peaks(self, target_json: str) -> Json:
        """Return the `DeviceSpeed` with the copy's rate, or a failure."""
        return encode(self._speed(child_calls.PEAKS, target_json))

    def _speed(
        self, call: child_calls.Call[DeviceSpeed, Device, ReferenceKernels], target_json: str
    ) -> DeviceSpeed | Failure:
        kernels = self._kernels(target_json)
        if isinstance(kernels, Failure):
            return kernels
        return call.tried(self._child, self._device, kernels, seconds=MEASURE_SECONDS)

    def _kernels(self, target_json: str) -> ReferenceKernels | Failure:
        if target_json not in self._reference_kernels:
            on_gpu = self._device.kind == "cuda"
            caches = {} if on_gpu else cpu.cache_bytes(self._threads)
            request = ReferenceRequest(target_json, self._threads, caches)
            built = built_kernels(request, self._level, on_gpu=on_gpu)
            if isinstance(built, Failure):
                return built
            self._reference_kernels[target_json] = built
        return self._reference_kernels[target_json]


def built_kernels(request: ReferenceRequest, level: Level, *, on_gpu: bool = False) -> ReferenceKernels | Failure:
    """Build reference kernels in another child, because the child that runs submitted code may not start a linker."""
    builder = WarmChild([child_calls.BUILD_REFERENCE.module], level=level, programs=True, devices=on_gpu)
    try:
        return child_calls.BUILD_REFERENCE.tried(builder, request, seconds=BUILD_SECONDS)
    finally:
        builder.close()

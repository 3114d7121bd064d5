"""The tuner's `Fleet` on Ray: builders build candidates, measurers time what was built, outcomes come back."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import RayError

from loopwright.codegen.kinds import FailureKind, Lane, Stage
from tuner.errors import RaceFailed
from tuner.ports import Meanwhile, MeasureRequest, RaceRequest, RaceResult
from tuner.types import Failure, Measured, Outcome, Span
from workers.messages import (
    Artifact,
    BuildAnswer,
    BuildRequest,
    Candidate,
    MeasureAnswer,
    MeasureBatch,
    ModelProgram,
    ModelTimes,
    Samples,
)
from workers.ray import actor_calls
from workers.ray.actor_calls import Pending
from workers.ray.actor_pool import ActorPool
from workers.ray.closing_race import ATTEMPTS, ClosingRace
from workers.ray.crew import Crew
from workers.ray.kept_artifacts import KeptArtifacts
from workers.ray.names import node_of
from workers.ray.patience import Patience
from workers.ray.sharing import Share, Sharing

_BUILDS_PER_PLACE = 2
"""One that is built and one that waits, so that a place is never idle for a round trip; of all loops together."""
_SHARED_BATCHES = 2
"""Batches of all loops together at a measurer, for the same reason. A loop has one, so that the next one is full."""
_MEASURE_BATCH = 4
"""Candidates that one process measures: its start costs tens of milliseconds. Not tuned."""
_FILL_SECONDS = 1.0
"""From a batch to the next one that is not full while others are built. Two forks of a large process take up to 60 ms
of a core, as much as the calls themselves; batches that were sent at once had one candidate each. Not tuned."""
_LEAST_SLOTS = 8
"""Not tuned."""
_ROLL_CALL_SECONDS = 2.0
"""Between two looks at which workers have joined, and which are drained."""
_POLL_SECONDS = 0.02
"""Between two looks for answers while the loop computes; a look takes a millisecond."""
_LOOK_SECONDS = 0.05
"""Between two looks whether other loops have left an actor, or whether a batch may be sent, for a loop that waits for
answers, too."""


@dataclass(frozen=True, slots=True)
class _Build:
    """A call of a builder."""

    builder: Any
    answer: Pending[BuildAnswer]
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class _Measurement:
    """A call of a measurer."""

    measurer: Any
    answer: Pending[list[MeasureAnswer]]
    batch: list[Candidate]


class RayFleet:
    """See `tuner.ports.Fleet`. ``builders`` maps the names of actors to the builds that each works on at a time,
    ``measurers`` to the workers' names in the ledger.

    ``drained`` returns the workers, of any fleet, that get no more work. What they have ends; once none is left and
    nothing is being measured, methods raise FleetDrained. ``crew`` returns actors that may have joined: those that are
    new are used from then on. ``share`` is that of the loop if others use the same actors.
    """

    def __init__(
        self,
        target_json: str,
        builders: Mapping[str, int],
        measurers: Mapping[str, str],
        *,
        drained: Callable[[], Collection[str]] = frozenset,
        crew: Callable[[], Crew] = Crew,
        share: Share | None = None,
    ) -> None:
        self._target_json = target_json
        self._drained = drained
        self._crew = crew
        self._share = share or Sharing().share()
        self._builders = ActorPool(builders, self._share, self._call_roll)
        self._measurers = ActorPool(dict.fromkeys(measurers, 1), self._share, self._call_roll)
        self._workers = dict(measurers)
        self._hosts: dict[str, str] = {}
        self._requests: dict[str, MeasureRequest] = {}
        """Of candidates that have no outcome yet, by key."""
        self._to_build: deque[Candidate] = deque()
        self._to_measure: deque[Candidate] = deque()
        self._next_fragment = 0.0
        """When a batch that is not full may be sent, on `time.monotonic`."""
        self._builds: dict[Any, _Build] = {}
        self._measurements: dict[Any, _Measurement] = {}
        self._finished: list[tuple[str, Outcome]] = []
        self._kept = KeptArtifacts()
        self._patience = Patience()
        self._caller = secrets.token_hex(8)
        self._closing_race = ClosingRace(
            target_json, self._builders, self._measurers, self._workers, self._hosts, self._kept
        )
        self._next_look = 0.0
        self._next_roll_call = 0.0

    @property
    def slots(self) -> int:
        return max(_LEAST_SLOTS, _BUILDS_PER_PLACE * self._builders.places + _MEASURE_BATCH * len(self._measurers))

    def submit(self, request: MeasureRequest) -> None:
        self._requests[request.key] = request
        self._to_build.append(Candidate(request.key, cutoff=request.cutoff))
        self._dispatch()

    def collect(self, timeout: float) -> list[tuple[str, Outcome]]:
        until = time.monotonic() + timeout
        self._dispatch()
        while not self._finished and (self._calls() or self._share.awaited):
            if self._measurers.is_drained and not self._measurements:
                break  # what is being built would be measured nowhere
            left = until - time.monotonic()
            if left <= 0 or not self._wait(left):
                break
            self._dispatch()
        finished, self._finished = self._finished, []
        if not finished and self._measurers.is_drained and not self._measurements:
            self._measurers.check()  # raises
        return finished

    def _wait(self, seconds: float) -> bool:
        """Wait for an answer, or until it may be this loop's turn. Return False if there was neither."""
        calls = self._calls()
        if not calls:
            return self._share.wait(seconds)
        looks = bool(self._share.awaited) or (bool(self._to_measure) and not self._has_batch())
        ready, _ = ray.wait(calls, num_returns=1, timeout=min(seconds, _LOOK_SECONDS) if looks else seconds)
        for reference in ready:
            self._receive(reference)
        return bool(ready) or looks

    def forward(self) -> None:
        now = time.monotonic()
        calls = self._calls()
        if not (calls or self._share.awaited) or now < self._next_look:
            return
        self._next_look = now + _POLL_SECONDS
        if calls:
            ready, _ = ray.wait(calls, num_returns=len(calls), timeout=0)
            for reference in ready:
                self._receive(reference)
        self._dispatch()

    def prepare(self, module_json: str) -> None:
        self._call_roll()
        self._closing_race.prepare(module_json)

    def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        self._call_roll()
        return self._closing_race.run(request, meanwhile)

    def race_all(self, requests: Sequence[RaceRequest], meanwhile: Meanwhile) -> list[RaceResult | RaceFailed]:
        self._call_roll()
        return self._closing_race.run_all(requests, meanwhile)

    def time_model(self, model: ModelProgram, meanwhile: Meanwhile) -> ModelTimes | Failure:
        """Build a whole model and time it on a device."""
        self._call_roll()
        measurer = self._measurers.await_one(meanwhile)
        error: RayError | None = None
        try:
            return actor_calls.TIME_MODEL(measurer, model, self._caller).awaited(meanwhile)
        except RayError as lost:
            error = lost
            return Failure(Stage.RUN, FailureKind.DEVICE_LOST, "the measurer's process died")
        finally:
            self._measurers.give_back(measurer, error)

    def abandon(self) -> None:
        self._requests.clear()
        self._to_build.clear()
        self._to_measure.clear()
        for build in self._builds.values():
            build.answer.cancel()
            self._builders.give_back(build.builder)
        for measurement in self._measurements.values():
            measurement.answer.cancel()
            self._measurers.give_back(measurement.measurer)
        self._builds.clear()
        self._measurements.clear()
        self._finished.clear()
        self._share.awaits(())
        for actor in (*self._builders, *self._measurers):
            actor_calls.stop(actor, self._caller)
        self._caller = secrets.token_hex(8)  # a later call is not to be stopped
        self._closing_race.abandon()

    def _calls(self) -> list[Any]:
        return [*self._builds, *self._measurements]

    def _call_roll(self) -> None:
        """Take up workers that have joined; send nothing more to those that are drained.

        Nor to the builders of hosts without any other worker.
        """
        now = time.monotonic()
        if now < self._next_roll_call:
            return
        self._next_roll_call = now + _ROLL_CALL_SECONDS
        crew = self._crew()
        self._workers |= crew.measurers
        self._hosts |= crew.hosts
        self._measurers.add(dict.fromkeys(crew.measurers, 1))
        self._builders.add(crew.builders)
        drained = self._drained()
        leaving = [measurer for measurer in self._measurers if self._worker(measurer) in drained]
        nodes = {node_of(self._measurers.name_of(measurer)) for measurer in leaving}
        for measurer in leaving:
            self._measurers.drain(measurer)
        nodes -= {node_of(self._measurers.name_of(measurer)) for measurer in self._measurers}
        for builder in list(self._builders):
            if node_of(self._builders.name_of(builder)) in nodes:
                self._builders.drain(builder)

    def _worker(self, measurer: Any) -> str:
        """Return the name in the ledger."""
        return self._workers[self._measurers.name_of(measurer)]

    def _dispatch(self) -> None:
        self._call_roll()
        if self._measurers.is_drained:
            self._share.awaits(())
            return
        while self._has_batch() and (measurer := self._measurers.take_if_below(1, _SHARED_BATCHES)) is not None:
            batch = self._next_batch()
            message = MeasureBatch(self._requests[batch[0].key].args, tuple(batch))
            measurement = actor_calls.MEASURE(measurer, message, self._caller)
            self._measurements[measurement.reference] = _Measurement(measurer, measurement, batch)
        limit = _BUILDS_PER_PLACE if self._share.leads else 1
        while self._to_build and (builder := self._builders.take_if_below(limit, _BUILDS_PER_PLACE)) is not None:
            candidate = self._to_build.popleft()
            request = self._requests[candidate.key]
            build = actor_calls.BUILD(
                builder,
                BuildRequest(request.module_json, request.trace_json, self._target_json),
                self._caller,
                self._patience.seconds(request.module_json, request.trace_json),
            )
            self._builds[build.reference] = _Build(builder, build, candidate)
        # Of actors that have as much of this loop as they may have, too: what one ends, this loop follows.
        self._share.awaits(
            [
                *(self._measurers.names if self._has_batch() else ()),
                *(self._builders.names if self._to_build else ()),
            ]
        )

    def _has_batch(self) -> bool:
        """Return whether candidates should be measured now: a batch is full, or others are not there soon."""
        if not self._to_measure:
            return False
        if len(self._to_measure) >= self._most_in_batch or not self._builds:
            return True
        return self._requests[self._to_measure[0].key].alone or time.monotonic() >= self._next_fragment

    @property
    def _most_in_batch(self) -> int:
        return _MEASURE_BATCH if self._share.leads else 1

    def _next_batch(self) -> list[Candidate]:
        """Take the next few candidates with the same arguments: one process measures them with the same buffers."""
        self._next_fragment = time.monotonic() + _FILL_SECONDS
        batch = [self._to_measure.popleft()]
        first = self._requests[batch[0].key]
        while not first.alone and self._to_measure and len(batch) < self._most_in_batch:
            following = self._requests[self._to_measure[0].key]
            if following.alone or following.args != first.args:
                break
            batch.append(self._to_measure.popleft())
        return batch

    def _receive(self, reference: Any) -> None:
        if reference in self._builds:
            self._receive_build(self._builds.pop(reference))
        else:
            self._receive_measurement(self._measurements.pop(reference))

    def _receive_build(self, build: _Build) -> None:
        candidate = build.candidate
        result: Artifact | Failure
        try:
            answer = build.answer.result()
        except RayError as error:
            self._builders.give_back(build.builder, error)
            result = Failure(Stage.BUILD, FailureKind.DEVICE_LOST, "the builder's process died")
        else:
            self._builders.give_back(build.builder)
            result = answer.result
            spans = (Span(Lane.BUILD, answer.builder, answer.start, answer.end),)
            candidate = replace(candidate, spans=spans)
        if isinstance(result, Artifact):
            seconds = candidate.spans[0].end - candidate.spans[0].start
            self._patience.observe(self._requests[candidate.key].module_json, seconds)
            self._to_measure.append(replace(candidate, artifact=result))
        else:
            self._failed(candidate, result, self._to_build)

    def _receive_measurement(self, measurement: _Measurement) -> None:
        worker = self._worker(measurement.measurer)
        try:
            answers = measurement.answer.result()
        except RayError as error:
            self._measurers.give_back(measurement.measurer, error)
            failure = Failure(Stage.RUN, FailureKind.DEVICE_LOST, "the measurer's process died", worker)
            for candidate in measurement.batch:
                self._failed(candidate, failure, self._to_measure)
            return
        self._measurers.give_back(measurement.measurer)
        for candidate, answer in zip(measurement.batch, answers, strict=True):
            spans = (*candidate.spans[:1], Span(Lane.MEASURE, worker, answer.start, answer.end))
            measured = replace(candidate, spans=spans)
            if isinstance(answer.result, Samples):
                run_secs, state = answer.result.run_secs, answer.result.device_state
                self._measured(measured, Measured(run_secs, worker, spans, answer.sandbox, state))
            else:
                self._failed(measured, replace(answer.result, worker=worker), self._to_measure)

    def _measured(self, candidate: Candidate, outcome: Measured) -> None:
        request = self._requests[candidate.key]
        self._kept.add(request.module_json, request.trace_json, outcome.least, candidate.code)
        self._finish(candidate.key, outcome)

    def _failed(self, candidate: Candidate, failure: Failure, again: deque[Candidate]) -> None:
        """Finish a candidate, or append it to ``again``, to be tried once more, because its process was lost."""
        losses = candidate.losses + (failure.kind is FailureKind.DEVICE_LOST)
        if failure.kind is FailureKind.DEVICE_LOST and losses < ATTEMPTS:
            again.append(replace(candidate, losses=losses))
        else:
            self._finish(candidate.key, replace(failure, spans=candidate.spans))

    def _finish(self, key: str, outcome: Outcome) -> None:
        del self._requests[key]
        self._finished.append((key, outcome))
        self._share.trials -= 1

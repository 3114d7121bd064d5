"""The tuner's `Fleet` on Ray: candidates go to builders, what they build goes on to measurers, outcomes come back."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import ActorDiedError, ActorUnschedulableError, RayError

from tuner.errors import NoDevice, RaceFailed
from tuner.ports import MeasureRequest, RaceEntry, RaceRequest, RaceResult
from tuner.types import Failure, FailureKind, Lane, LibraryTime, Measured, Outcome, Span, Stage, TensorInfo
from workers import host_lock
from workers.cluster import NAMESPACE
from workers.patience import Patience

ATTEMPTS = 3
"""How often a candidate is tried where the device or a process, not the candidate, was lost."""
_BUILDS_PER_BUILDER = 2
"""One that builds and one that waits, so that a builder never idles for a round trip."""
_MEASURE_BATCH = 4
_KEPT = 32
"""Of each module: a race's contenders are among them."""
_LOOK_SECONDS = 0.02
"""How often a loop that computes looks for what has ended meanwhile; a look takes a millisecond."""
_HOST_TARGET = '{"kind": "llvm"}'


@dataclass(slots=True)
class _Job:
    request: MeasureRequest
    attempts: int = 0
    artifact: dict[str, Any] | None = None
    spans: tuple[Span, ...] = ()


class _Pool:
    """Actors of one kind with the number of calls each has in flight; those that died for good leave."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.load: dict[Any, int] = {ray.get_actor(name, NAMESPACE): 0 for name in names}

    def idlest(self, limit: int) -> Any | None:
        """The actor with the least in flight, if it has fewer than ``limit``. Raises NoDevice where none is left."""
        if not self.load:
            raise NoDevice(f"all of {', '.join(self._names)} died; the job goes on when a machine joins")
        actor = min(self.load, key=self.load.__getitem__)
        return actor if self.load[actor] < limit else None

    def done(self, actor: Any, error: Exception | None) -> None:
        if actor in self.load:
            self.load[actor] -= 1
            if isinstance(error, ActorDiedError | ActorUnschedulableError):
                del self.load[actor]


class _Kept:
    """Artifacts of the fastest programs measured: a race need not build them again."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, tuple[float, dict[str, Any]]]] = {}

    def add(self, module_json: str, trace_json: str, seconds: float, artifact: dict[str, Any]) -> None:
        """Keep it, and let go of the slowest where there are too many."""
        found = self._found.setdefault(module_json, {})
        found[trace_json] = (seconds, artifact)
        if len(found) > _KEPT:
            del found[max(found, key=lambda trace: found[trace][0])]

    def take(self, module_json: str) -> dict[str, dict[str, Any]]:
        """All of a module, by trace, and let go of them."""
        return {trace: artifact for trace, (_, artifact) in self._found.pop(module_json, {}).items()}


class _Busy:
    """See `tuner.ports.Busy`. ``hand_on`` is called now and then: no actor is to wait for a loop that computes."""

    def __init__(self, held: host_lock.Busy, hand_on: Callable[[], None]) -> None:
        self._held = held
        self._hand_on = hand_on
        self._looked = time.monotonic()

    def pause(self) -> None:
        self._held.pause()
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._hand_on()
            self._looked = time.monotonic()


class RayFleet:
    """See `tuner.ports.Fleet`. ``measurers`` are actor names with the worker's name for the ledger."""

    def __init__(self, target_json: str, builders: Sequence[str], measurers: dict[str, str]) -> None:
        self._target_json = target_json
        self._workers = measurers
        self._builders = _Pool(builders)
        self._measurers = _Pool(list(measurers))
        self._names = {ray.get_actor(name, NAMESPACE): worker for name, worker in measurers.items()}
        self._to_build: deque[_Job] = deque()
        self._to_measure: deque[_Job] = deque()
        self._calls: dict[Any, tuple[Any, list[_Job]]] = {}
        self._finished: list[tuple[str, Outcome]] = []
        self._kept = _Kept()
        self._patience = Patience()

    @property
    def slots(self) -> int:
        return max(8, _BUILDS_PER_BUILDER * len(self._builders.load) + _MEASURE_BATCH * len(self._measurers.load))

    def submit(self, request: MeasureRequest) -> None:
        self._to_build.append(_Job(request))
        self._dispatch()

    def collect(self, timeout: float) -> list[tuple[str, Outcome]]:
        until = time.monotonic() + timeout
        while not self._finished and self._calls:
            ready, _ = ray.wait(list(self._calls), num_returns=1, timeout=max(0.0, until - time.monotonic()))
            if not ready:
                break
            self._absorb(ready[0])
            self._dispatch()
        finished, self._finished = self._finished, []
        return finished

    @contextmanager
    def busy(self) -> Iterator[_Busy]:
        with host_lock.busy() as held:
            yield _Busy(held, self._hand_on)

    def race(self, request: RaceRequest) -> RaceResult:
        reference, baseline, *built = self._build_all(request)
        for artifact in (reference, baseline):
            if "failure" in artifact:
                raise RaceFailed(artifact["failure"]["message"])
        keys = list(request.contenders)
        errors = {k: b["failure"]["message"] for k, b in zip(keys, built, strict=True) if "failure" in b}
        standing = [(k, b["artifact"]) for k, b in zip(keys, built, strict=True) if "artifact" in b]
        fixed = (request, reference["artifact"], baseline["artifact"])
        answer = self._run_race(*fixed, [artifact for _, artifact in standing])
        if "failure" in answer:
            # Some contender takes the whole process down: race each alone to find out which.
            alone = {key: self._run_race(*fixed, [artifact]) for key, artifact in standing}
            errors |= {key: found["failure"]["message"] for key, found in alone.items() if "failure" in found}
            standing = [(key, artifact) for key, artifact in standing if "failure" not in alone[key]]
            answer = self._run_race(*fixed, [artifact for _, artifact in standing])
            if "failure" in answer:
                raise RaceFailed(answer["failure"]["message"])
        entries = [_entry(value) for value in answer["contenders"]]
        if entries[0].error is not None:
            raise RaceFailed(entries[0].error)
        contenders = {k: entry for (k, _), entry in zip(standing, entries[1:], strict=True)}
        contenders |= {k: RaceEntry((), 0.0, 0.0, error) for k, error in errors.items()}
        library = answer["library"]
        told = None if library is None else LibraryTime(library["name"], tuple(library["run_secs"]))
        return RaceResult(entries[0], contenders, told)

    def _build_all(self, request: RaceRequest) -> list[dict[str, Any]]:
        """Reference (the unscheduled program for the host), baseline, contenders: artifacts or failures, in order."""
        wanted: list[tuple[str | None, str]] = [(None, self._target_json)]
        wanted += [(trace, self._target_json) for trace in request.contenders.values()]
        if '"kind": "llvm"' not in self._target_json:
            wanted.insert(0, (None, _HOST_TARGET))
        kept = self._kept.take(request.module_json)
        calls = [(request.module_json, trace, target) for trace, target in wanted if trace not in kept]
        answers = iter(self._retry(self._builders, "build", calls))
        built = [{"artifact": kept[trace]} if trace in kept else next(answers) for trace, _ in wanted]
        # On llvm the baseline is the unscheduled program, and so the reference as well.
        return built if len(built) == len(request.contenders) + 2 else [built[0], *built]

    def _run_race(
        self, request: RaceRequest, reference: dict[str, Any], baseline: dict[str, Any], artifacts: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """``{"contenders": …}``, the baseline's first, or the failure that ended the racing process."""
        contenders = [baseline, *artifacts]
        arguments = (_wire(request.args), list(request.outputs), reference, contenders, request.seed)
        return self._retry(self._measurers, "race", [arguments])[0]

    def _retry(self, pool: _Pool, method: str, calls: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
        """Answers to calls of the pool's actors, in order; again where an actor or its child was lost from outside.

        Raises NoDevice when attempts are spent.
        """
        answers: dict[int, dict[str, Any]] = {}
        for _ in range(ATTEMPTS):
            waiting: dict[int, tuple[Any, Any]] = {}
            for number, arguments in enumerate(calls):
                if number not in answers:
                    actor = pool.idlest(1_000_000)
                    pool.load[actor] += 1
                    waiting[number] = actor, getattr(actor, method).remote(*arguments)
            for number, (actor, reference) in waiting.items():
                try:
                    answer: dict[str, Any] = ray.get(reference)
                except RayError as error:
                    pool.done(actor, error)
                    continue
                pool.done(actor, None)
                if answer.get("failure", {}).get("kind") != FailureKind.DEVICE_LOST:
                    answers[number] = answer
            if len(answers) == len(calls):
                return [answers[number] for number in range(len(calls))]
        raise NoDevice(f"{method} was lost {ATTEMPTS} times in a row")

    def _dispatch(self) -> None:
        while self._to_measure and (actor := self._measurers.idlest(1)) is not None:
            batch = self._batch()
            candidates = [
                {"key": job.request.key, "artifact": job.artifact, "cutoff": job.request.cutoff} for job in batch
            ]
            self._measurers.load[actor] += 1
            self._calls[actor.measure.remote(_wire(batch[0].request.args), candidates)] = (actor, batch)
        while self._to_build and (actor := self._builders.idlest(_BUILDS_PER_BUILDER)) is not None:
            job = self._to_build.popleft()
            self._builders.load[actor] += 1
            request = job.request
            patience = self._patience.seconds(request.module_json, request.trace_json)
            reference = actor.build.remote(request.module_json, request.trace_json, self._target_json, patience)
            self._calls[reference] = (actor, [job])

    def _hand_on(self) -> None:
        """Take up what has ended, without waiting."""
        if self._calls:
            ready, _ = ray.wait(list(self._calls), num_returns=len(self._calls), timeout=0)
            for reference in ready:
                self._absorb(reference)
            self._dispatch()

    def _batch(self) -> list[_Job]:
        """The next few jobs whose arguments are alike: one fork measures them with the same buffers."""
        batch = [self._to_measure.popleft()]
        args = batch[0].request.args
        while self._to_measure and len(batch) < _MEASURE_BATCH and self._to_measure[0].request.args == args:
            batch.append(self._to_measure.popleft())
        return batch

    def _absorb(self, reference: Any) -> None:
        actor, jobs = self._calls.pop(reference)
        measuring = actor in self._names
        pool = self._measurers if measuring else self._builders
        stage = Stage.RUN if measuring else Stage.BUILD
        try:
            answer = ray.get(reference)
        except RayError as error:
            pool.done(actor, error)
            for job in jobs:
                self._lost(job, stage, f"the {stage} process died", self._names.get(actor))
            return
        pool.done(actor, None)
        if not measuring:
            self._built(jobs[0], answer)
            return
        worker = self._names[actor]
        for job, result in zip(jobs, answer, strict=True):
            job.spans = (*job.spans[:1], Span(Lane.MEASURE, worker, *result["span"]))
            if "failure" in result:
                self._failed(job, result["failure"], worker)
            else:
                measured = Measured(tuple(result["run_secs"]), worker, job.spans)
                if job.request.trace_json is not None and job.artifact is not None:
                    self._kept.add(job.request.module_json, job.request.trace_json, measured.least, job.artifact)
                self._finished.append((job.request.key, measured))

    def _built(self, job: _Job, answer: dict[str, Any]) -> None:
        job.spans = (Span(Lane.BUILD, *answer["span"]),)
        if "failure" in answer:
            self._failed(job, answer["failure"], None)
        else:
            job.artifact = answer["artifact"]
            self._patience.observe(job.request.module_json, job.spans[0].end - job.spans[0].start)
            self._to_measure.append(job)

    def _failed(self, job: _Job, found: dict[str, Any], worker: str | None) -> None:
        if found["kind"] == FailureKind.DEVICE_LOST:
            self._lost(job, Stage(found["stage"]), found["message"], worker)
            return
        outcome = Failure(Stage(found["stage"]), FailureKind(found["kind"]), found["message"], worker, job.spans)
        self._finished.append((job.request.key, outcome))

    def _lost(self, job: _Job, stage: Stage, message: str, worker: str | None) -> None:
        job.attempts += 1
        if job.attempts < ATTEMPTS:
            (self._to_measure if stage is Stage.RUN else self._to_build).append(job)
        else:
            lost = Failure(stage, FailureKind.DEVICE_LOST, message, worker, job.spans)
            self._finished.append((job.request.key, lost))


def _wire(args: Sequence[TensorInfo]) -> list[Any]:
    return [[list(info.shape), info.dtype] for info in args]


def _entry(value: dict[str, Any]) -> RaceEntry:
    return RaceEntry(
        tuple(value.get("run_secs", ())),
        value["max_abs_error"],
        value["max_rel_error"],
        value.get("error") or value.get("wrong"),
    )

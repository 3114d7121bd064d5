"""The closing race on the fleet: build missing artifacts, race, and find contenders that end the process."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from ray.exceptions import RayError

from tuner.errors import NoDevice, RaceFailed
from tuner.ports import Meanwhile, Raced, RaceRequest, RaceResult
from tuner.types import BASELINE, LOSSES, Failure
from workers.messages import Artifact, BuildRequest, BuiltRace, RaceAnswer
from workers.ray import actor_calls
from workers.ray.actor_calls import Pending
from workers.ray.actor_pool import ActorPool
from workers.ray.kept_artifacts import LIMIT, KeptArtifacts

ATTEMPTS = 3
"""Calls until a lost process counts as a lost device. Not tuned."""
_ANY_HOST = '{"kind": "llvm"}'
"""Without the instructions that convert float16, for example: a product takes ten times as long."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Programs:
    """``reference`` is the unscheduled program for the host, with the C library's elementary functions."""

    reference: Artifact
    baseline: Artifact
    contenders: dict[str, Artifact | Failure]

    @property
    def racing(self) -> dict[str, Artifact]:
        """The contenders that could be built."""
        return {key: built for key, built in self.contenders.items() if isinstance(built, Artifact)}


class ClosingRace:
    """Runs races on the actors of a fleet.

    ``workers`` maps the names of measurers to those in the ledger, ``hosts`` to the targets of their hosts' processors;
    ``kept`` contains artifacts that need not be built again.
    """

    def __init__(
        self,
        target_json: str,
        builders: ActorPool,
        measurers: ActorPool,
        workers: Mapping[str, str],
        hosts: Mapping[str, str],
        kept: KeptArtifacts,
    ) -> None:
        self._target_json = target_json
        self._caller = secrets.token_hex(8)
        self._builders = builders
        self._measurers = measurers
        self._workers = workers
        self._hosts = hosts
        self._kept = kept
        self._built: dict[BuildRequest, Artifact] = {}
        """The last ones: a gate races the same programs again and again."""
        self._begun: dict[BuildRequest, tuple[Any, Pending[Artifact | Failure]]] = {}
        """References whose builds were begun ahead, with their builders."""

    def prepare(self, module_json: str) -> None:
        """Begin to build the reference of a module, if a builder may be called now."""
        reference = self._reference(module_json)
        if reference in self._built or reference in self._begun:
            return
        if (builder := self._builders.take()) is not None:
            self._begun[reference] = builder, self._artifact(reference, builder)

    def abandon(self) -> None:
        """Stop what actors do for races, and what they were to do."""
        for builder, answer in self._begun.values():
            answer.cancel()
            self._builders.give_back(builder)
        self._begun.clear()
        for actor in (*self._builders, *self._measurers):
            actor_calls.stop(actor, self._caller)
        self._caller = secrets.token_hex(8)  # a later call is not to be stopped

    def run(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        """Race all contenders in one process, or without those that end it, or without the library that does.

        Raises RaceFailed if the reference or the baseline cannot be built or run, NoDevice if processes were lost
        several times in a row.
        """
        [result] = self.run_all([request], meanwhile)
        if isinstance(result, RaceFailed):
            raise result
        return result

    def run_all(self, requests: Sequence[RaceRequest], meanwhile: Meanwhile) -> list[RaceResult | RaceFailed]:
        """Run races one after the other in the same processes, and return their results in order.

        If a program ends a process, or the worker runs a single race only, each race has processes of its own.
        Raises NoDevice as `run`.
        """
        built = self._build(requests, meanwhile)
        ready = [
            (each, programs) for each, programs in zip(requests, built, strict=True) if isinstance(programs, _Programs)
        ]
        answers = iter(self._together(ready, meanwhile))
        results: list[RaceResult | RaceFailed] = []
        for request, programs in zip(requests, built, strict=True):
            if isinstance(programs, RaceFailed):
                results.append(programs)
                continue
            try:
                results.append(self._result(request, programs, next(answers), meanwhile))
            except RaceFailed as error:
                results.append(error)
        return results

    def _result(
        self, request: RaceRequest, programs: _Programs, race: RaceAnswer | Failure | None, meanwhile: Meanwhile
    ) -> RaceResult:
        """Return the result of a race whose answer may be there. Raises RaceFailed."""
        results: dict[str, Raced | Failure] = {
            key: built for key, built in programs.contenders.items() if isinstance(built, Failure)
        }
        racing = programs.racing
        if race is None:
            race = self._race(request, programs, racing, meanwhile)
        if isinstance(race, Failure):
            # Some contender, or the library, ends the whole process: race each contender alone to find out which.
            alone = {
                key: self._race(request, programs, {key: artifact}, meanwhile, library=False)
                for key, artifact in racing.items()
            }
            ended = {key: outcome for key, outcome in alone.items() if isinstance(outcome, Failure)}
            results |= ended
            racing = {key: artifact for key, artifact in racing.items() if key not in ended}
            race = self._race(request, programs, racing, meanwhile, library=bool(ended))
            if isinstance(race, Failure):
                raise RaceFailed(race.message)
        baseline, *contenders = race.contenders
        if isinstance(baseline, Failure):
            raise RaceFailed(baseline.message)
        results |= dict(zip(racing, contenders, strict=True))
        in_order = {key: results[key] for key in request.contenders}
        return RaceResult(
            baseline,
            in_order,
            library=race.library,
            sandbox=race.sandbox,
            system=race.system,
            device_state=race.device_state,
            seed=race.seed,
            waited=race.waited,
            worker=race.worker,
            artifacts={BASELINE.hash: programs.baseline.sha256} | {key: code.sha256 for key, code in racing.items()},
        )

    def _build(self, requests: Sequence[RaceRequest], meanwhile: Meanwhile) -> list[_Programs | RaceFailed]:
        """Build what the races need and is not there yet, all at once."""
        needed: list[tuple[BuildRequest, BuildRequest, dict[str, BuildRequest]]] = []
        built: dict[BuildRequest, Artifact | Failure] = {}
        for request in requests:
            kept = self._kept.take(request.module_json)
            reference = self._reference(request.module_json)
            baseline = BuildRequest(request.module_json, None, self._target_json)
            contenders = {
                key: BuildRequest(request.module_json, trace, self._target_json)
                for key, trace in request.contenders.items()
            }
            built |= {
                each: kept[trace] for each in (baseline, *contenders.values()) if (trace := each.trace_json) in kept
            }
            needed.append((reference, baseline, contenders))
        wanted = list(dict.fromkeys(each for one, two, more in needed for each in (one, two, *more.values())))
        built |= {each: self._built[each] for each in wanted if each in self._built}
        for reference, _, _ in needed:
            if reference in self._begun and (answer := self._finished(reference, meanwhile)) is not None:
                built[reference] = answer
        missing = [each for each in wanted if each not in built]
        calls = [partial(self._artifact, each) for each in missing]
        built |= dict(zip(missing, self._answers(self._builders, calls, meanwhile), strict=True))
        self._built |= {each: artifact for each, artifact in built.items() if isinstance(artifact, Artifact)}
        for each in list(self._built)[:-LIMIT]:
            del self._built[each]
        return [
            _programs(built[reference], built[baseline], {key: built[each] for key, each in contenders.items()})
            for reference, baseline, contenders in needed
        ]

    def _reference(self, module_json: str) -> BuildRequest:
        target = json.loads(self._target_json)
        # A target with a triple may be for a board of another kind: what it needs, this host may not have.
        on_host = target["kind"] == "llvm" and "mtriple" not in target
        host = self._target_json if on_host else self._host_target()
        return BuildRequest(module_json, None, host, exact_math=True)

    def _finished(self, reference: BuildRequest, meanwhile: Meanwhile) -> Artifact | Failure | None:
        """Wait for a build that was begun, and return its answer; None if its process was lost."""
        builder, answer = self._begun[reference]
        result, lost = None, None
        try:
            result = answer.awaited(meanwhile)
        except RayError as error:
            lost = error
        del self._begun[reference]
        self._builders.give_back(builder, lost)
        return None if isinstance(result, Failure) and result.kind in LOSSES else result

    def _artifact(self, request: BuildRequest, builder: Any) -> Pending[Artifact | Failure]:
        return actor_calls.BUILD(builder, request, self._caller, math.inf).then(lambda built: built.result)

    def _host_target(self) -> str:
        """Return the target of a program that runs on the host of any measurer."""
        targets = {self._hosts.get(name, _ANY_HOST) for name in self._measurers.names}
        return targets.pop() if len(targets) == 1 else _ANY_HOST

    def _together(
        self, races: Sequence[tuple[RaceRequest, _Programs]], meanwhile: Meanwhile
    ) -> list[RaceAnswer | Failure | None]:
        """Return the answers of races in the same processes; None for a race that has to be run alone."""
        if not races:
            return []
        first, *others = (_built_race(request, programs, programs.racing) for request, programs in races)
        answer = self._raced(replace(first, following=tuple(others)), meanwhile)
        if isinstance(answer, Failure):
            return [None] * len(races) if others else [answer]
        following = (
            replace(each, sandbox=answer.sandbox, system=answer.system, worker=answer.worker)
            for each in answer.following
        )
        answers = [answer, *following]
        found = [replace(each, seed=race.seed) for each, race in zip(answers, (first, *others), strict=False)]
        return [*found, *[None] * (len(races) - len(found))]

    def _race(
        self,
        request: RaceRequest,
        programs: _Programs,
        racing: dict[str, Artifact],
        meanwhile: Meanwhile,
        *,
        library: bool = True,
    ) -> RaceAnswer | Failure:
        """Return the results, the baseline's first, or the failure that ended the racing process."""
        race = _built_race(request, programs, racing, library=library)
        answer = self._raced(race, meanwhile)
        return answer if isinstance(answer, Failure) else replace(answer, seed=race.seed)

    def _raced(self, race: BuiltRace, meanwhile: Meanwhile) -> RaceAnswer | Failure:
        def call(measurer: Any) -> Pending[RaceAnswer | Failure]:
            worker = self._workers[self._measurers.name_of(measurer)]
            answer = actor_calls.RACE(measurer, race, self._caller)
            return answer.then(lambda raced: raced if isinstance(raced, Failure) else replace(raced, worker=worker))

        [answer] = self._answers(self._measurers, [call], meanwhile)
        return answer

    @staticmethod
    def _answers(
        pool: ActorPool, calls: Sequence[Callable[[Any], Pending[T | Failure]]], meanwhile: Meanwhile
    ) -> list[T | Failure]:
        """Make all calls at once and return the answers in order; repeat those whose process was lost.

        Raises NoDevice if a call was lost `ATTEMPTS` times.
        """
        answers: dict[int, T | Failure] = {}
        for _ in range(ATTEMPTS):
            pending: dict[int, tuple[Any, Pending[T | Failure]]] = {}
            for number, call in enumerate(calls):
                if number not in answers:
                    actor = pool.await_one(meanwhile)
                    pending[number] = actor, call(actor)
            for number, (actor, answer) in pending.items():
                try:
                    result = answer.awaited(meanwhile)
                except RayError as error:
                    pool.give_back(actor, error)
                    continue
                except BaseException:
                    for other, unanswered in list(pending.values())[list(pending).index(number) :]:
                        unanswered.cancel()
                        pool.give_back(other)
                    raise
                pool.give_back(actor)
                if not (isinstance(result, Failure) and result.kind in LOSSES):
                    answers[number] = result
            if len(answers) == len(calls):
                return [answers[number] for number in range(len(calls))]
        raise NoDevice(f"a process of the closing race was lost {ATTEMPTS} times in a row")


def _programs(
    reference: Artifact | Failure, baseline: Artifact | Failure, contenders: dict[str, Artifact | Failure]
) -> _Programs | RaceFailed:
    if isinstance(reference, Failure):
        return RaceFailed(reference.message)
    if isinstance(baseline, Failure):
        return RaceFailed(baseline.message)
    return _Programs(reference, baseline, contenders)


def _built_race(
    request: RaceRequest, programs: _Programs, racing: Mapping[str, Artifact], *, library: bool = True
) -> BuiltRace:
    return BuiltRace(
        args=request.args,
        outputs=request.outputs,
        reference=programs.reference,
        contenders=(programs.baseline, *racing.values()),
        # Drawn now that the programs are fixed, so that none can be made for the inputs.
        seed=secrets.randbits(32),
        yardsticks=request.yardsticks,
        repeats=request.repeats,
        library=library,
        math=request.math,
        seconds=request.seconds,
    )

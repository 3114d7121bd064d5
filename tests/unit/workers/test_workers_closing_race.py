"""What a closing race does when its process ends: it finds the contender, or the library, that ends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from loopwright.codegen.kinds import FailureKind, SandboxLevel, Stage
from tuner.errors import RaceFailed
from tuner.ports import Meanwhile, Raced, RaceRequest, RaceResult
from tuner.types import Failure, LibraryTime, TensorInfo
from workers.messages import Artifact, ArtifactFormat, BuildAnswer, BuildRequest, BuiltRace, RaceAnswer
from workers.ray import actor_calls
from workers.ray.closing_race import ClosingRace
from workers.ray.kept_artifacts import KeptArtifacts

CRASH = Failure(Stage.CERTIFY, FailureKind.CRASH, "it died by signal 11")
FINE = Raced((0.25,), 0.0, 0.0)
SANDBOX = SandboxLevel.LANDLOCK
LIBRARY = LibraryTime("a library", (0.5,))


@dataclass(frozen=True)
class Answer:
    value: Any

    def awaited(self, meanwhile: Meanwhile) -> Any:
        return self.value

    def then(self, change: Callable[[Any], Any]) -> Answer:
        return Answer(change(self.value))


class Pool:
    """Of actors that are always there."""

    names = ("actor",)

    def await_one(self, meanwhile: Meanwhile) -> None:
        return None

    def give_back(self, actor: None) -> None:
        pass

    def name_of(self, actor: None) -> str:
        return "actor"


def raced(
    monkeypatch: pytest.MonkeyPatch, ends: Callable[[BuiltRace], bool], *contenders: str
) -> tuple[RaceResult, list[BuiltRace]]:
    """Return the result of a race of traces, and all races that were run; a race that ``ends`` its process fails."""
    races: list[BuiltRace] = []

    def build(actor: None, request: BuildRequest, caller: str, seconds: float) -> Answer:
        return Answer(
            BuildAnswer(Artifact(ArtifactFormat.LLVM_IR, request.trace_json or "baseline"), "builder", 0.0, 1.0)
        )

    def race(actor: None, race: BuiltRace, caller: str) -> Answer:
        races.append(race)
        if ends(race):
            return Answer(CRASH)
        return Answer(RaceAnswer((FINE,) * len(race.contenders), LIBRARY if race.library else None))

    monkeypatch.setattr(actor_calls, "BUILD", build)
    monkeypatch.setattr(actor_calls, "RACE", race)
    pool: Any = Pool()
    closing = ClosingRace('{"kind": "cuda"}', pool, pool, {"actor": "host/cpu"}, {}, KeptArtifacts())
    request = RaceRequest("module", (TensorInfo((1,), "float32"),), (True,), {each: each for each in contenders})
    return closing.run(request, lambda: None), races


def raced_together(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[BuiltRace], Any], *modules: str
) -> tuple[list[RaceResult | RaceFailed], list[BuiltRace]]:
    """Return the results of races of a schedule of each module, and what was asked of the worker, as it answers."""
    asked: list[BuiltRace] = []

    def build(actor: None, request: BuildRequest, caller: str, seconds: float) -> Answer:
        code = f"{request.module_json} {request.trace_json}"
        broken = Failure(Stage.BUILD, FailureKind.COMPILE, "no code")
        built = broken if "broken" in code else Artifact(ArtifactFormat.LLVM_IR, code)
        return Answer(BuildAnswer(built, "builder", 0.0, 1.0))

    def race(actor: None, race: BuiltRace, caller: str) -> Answer:
        asked.append(race)
        return Answer(answer(race))

    monkeypatch.setattr(actor_calls, "BUILD", build)
    monkeypatch.setattr(actor_calls, "RACE", race)
    pool: Any = Pool()
    closing = ClosingRace('{"kind": "llvm"}', pool, pool, {"actor": "host/cpu"}, {}, KeptArtifacts())
    requests = [RaceRequest(each, (TensorInfo((1,), "float32"),), (True,), {"key": "trace"}) for each in modules]
    return closing.run_all(requests, lambda: None), asked


def _times(race: BuiltRace) -> RaceAnswer:
    """Return an answer whose samples are the lengths of the programs' codes, so that no two functions are confused."""
    return RaceAnswer(tuple(Raced((float(len(each.code)),), 0.0, 0.0) for each in race.contenders), sandbox=SANDBOX)


def has(race: BuiltRace, contender: str) -> bool:
    return contender in {artifact.code for artifact in race.contenders}


def test_a_race_that_goes_well_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    result, races = raced(monkeypatch, lambda race: False, "a", "b")
    assert (result.contenders, result.library) == ({"a": FINE, "b": FINE}, LIBRARY)
    assert result.worker == "host/cpu"
    assert len(races) == 1


def test_a_contender_that_ends_the_process_is_found_and_the_library_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = raced(monkeypatch, lambda race: has(race, "b"), "a", "b", "c")
    assert result.contenders == {"a": FINE, "b": CRASH, "c": FINE}
    assert result.library == LIBRARY


def test_a_library_that_ends_the_process_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = raced(monkeypatch, lambda race: race.library, "a", "b")
    assert (result.contenders, result.library) == ({"a": FINE, "b": FINE}, None)


def test_a_race_without_contenders_is_tried_without_the_library_too(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = raced(monkeypatch, lambda race: race.library)
    assert (result.baseline, result.library) == (FINE, None)


def test_races_of_several_functions_are_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(race: BuiltRace) -> RaceAnswer:
        return replace(_times(race), following=tuple(map(_bare, race.following)))

    def _bare(race: BuiltRace) -> RaceAnswer:
        return replace(_times(race), sandbox=None)  # the worker adds it to the answer as a whole

    modules = ["one", "another", "broken", "a third"]
    results, asked = raced_together(monkeypatch, answer, *modules)
    assert [len(race.following) for race in asked] == [2]
    assert isinstance(results[2], RaceFailed)
    seeds = set()
    for module, result in zip(modules, results, strict=True):
        if isinstance(result, RaceResult):
            assert result.baseline.run_secs == (float(len(f"{module} None")),)
            assert result.contenders == {"key": Raced((float(len(f"{module} trace")),), 0.0, 0.0)}
            assert result.sandbox is SANDBOX
            seeds.add(result.seed)
    assert len(seeds) == 3


@pytest.mark.parametrize("knows_of_groups", [True, False])
def test_races_whose_process_ends_are_run_one_by_one(monkeypatch: pytest.MonkeyPatch, knows_of_groups: bool) -> None:
    """Also on a worker of an older version, which answers the first race only."""

    def answer(race: BuiltRace) -> RaceAnswer | Failure:
        return CRASH if race.following and knows_of_groups else _times(race)

    results, asked = raced_together(monkeypatch, answer, "one", "another")
    lengths = [result.baseline.run_secs[0] for result in results if isinstance(result, RaceResult)]
    assert lengths == [len("one None"), len("another None")]
    assert len(asked) == (3 if knows_of_groups else 2)


def test_a_process_that_always_ends_is_a_race_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RaceFailed, match="signal 11"):
        raced(monkeypatch, lambda race: True, "a", "b")

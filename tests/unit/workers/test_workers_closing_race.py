"""What a closing race does when its process ends: it finds the contender, or the library, that ends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from loopwright.codegen.kinds import FailureKind, Stage
from tuner.errors import RaceFailed
from tuner.ports import Meanwhile, Raced, RaceRequest, RaceResult
from tuner.types import Failure, LibraryTime, TensorInfo
from workers.messages import Artifact, ArtifactFormat, BuildAnswer, BuildRequest, BuiltRace, RaceAnswer
from workers.ray import actor_calls
from workers.ray.closing_race import ClosingRace
from workers.ray.kept_artifacts import KeptArtifacts

CRASH = Failure(Stage.CERTIFY, FailureKind.CRASH, "it died by signal 11")
FINE = Raced((0.25,), 0.0, 0.0)
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

    def take(self) -> None:
        return None

    def give_back(self, actor: None) -> None:
        pass


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
    closing = ClosingRace('{"kind": "cuda"}', pool, pool, {}, KeptArtifacts())
    request = RaceRequest("module", (TensorInfo((1,), "float32"),), (True,), {each: each for each in contenders})
    return closing.run(request, lambda: None), races


def has(race: BuiltRace, contender: str) -> bool:
    return contender in {artifact.code for artifact in race.contenders}


def test_a_race_that_goes_well_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    result, races = raced(monkeypatch, lambda race: False, "a", "b")
    assert (result.contenders, result.library) == ({"a": FINE, "b": FINE}, LIBRARY)
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


def test_a_process_that_always_ends_is_a_race_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RaceFailed, match="signal 11"):
        raced(monkeypatch, lambda race: True, "a", "b")

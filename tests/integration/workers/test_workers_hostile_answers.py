"""A fork that ran a hostile program may say anything: it is at fault itself, and no other request's answer changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from loopwright.codegen.kinds import FailureKind, Stage
from tests.integration.workers.children import FUNCTIONS, works
from tuner.codec import decode, encode
from tuner.types import Failure
from workers.child.child_calls import Call
from workers.child.warm_child import ChildError, Ending, WarmChild
from workers.messages import Artifact, ArtifactFormat, BuiltRace, Candidate, MeasureAnswer, MeasureBatch
from workers.ray.actors import Measurer
from workers.walls.levels import Policy

FORGE = Call[Any, list[str]](FUNCTIONS, "forge", str)
ARTIFACT = Artifact(ArtifactFormat.LLVM_IR, "code")


@pytest.fixture(scope="module")
def measurer() -> Iterator[Measurer]:
    made = Measurer("cpu", 1, Policy.PREFER, FUNCTIONS)
    yield made
    made._child.close()


@pytest.mark.parametrize("frame", ['{"value": ', "[]", "7", "[" * 50_000], ids=["cut off", "list", "number", "deep"])
def test_what_is_no_frame_is_a_malformed_answer(child: WarmChild, frame: str) -> None:
    with pytest.raises(ChildError) as caught:
        FORGE.raw(child, ([frame],), 30)
    assert caught.value.ending is Ending.MALFORMED
    assert works(child)


def test_a_fork_cannot_speak_for_the_warm_child(child: WarmChild) -> None:
    assert FORGE.raw(child, (['{"end": "done"}', '{"end": "crash", "signal": 9}', '{"ready": 1}'],), 30) == "answer"
    assert works(child)


def test_an_answer_of_another_type_is_malformed(child: WarmChild) -> None:
    failure = Call[float, list[Any]](FUNCTIONS, "values", float, Stage.CERTIFY).tried(child, ["fast"], seconds=30)
    assert isinstance(failure, Failure)
    assert (failure.stage, failure.kind) == (Stage.CERTIFY, FailureKind.CRASH)


def test_a_result_of_no_candidate_is_the_first_candidates_crash(measurer: Measurer) -> None:
    batch = MeasureBatch((), (Candidate("one", ARTIFACT), Candidate("two", ARTIFACT)))
    answers = decode(list[MeasureAnswer], measurer.measure(encode(batch), "caller"))
    assert [each.result.kind for each in answers if isinstance(each.result, Failure)] == [FailureKind.CRASH] * 2


def test_a_race_with_too_few_results_has_failed(measurer: Measurer) -> None:
    race = BuiltRace((), (), ARTIFACT, (ARTIFACT,) * 2, 1)
    assert decode(Failure, measurer.race(encode(race), "caller")).kind is FailureKind.CRASH

"""Drafts: they are what a replay makes of them, they reach every kind of choice, and none comes twice."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from tvm.s_tir import Schedule

from loopwright.codegen.schedule import new_schedule
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from tests.unit.tuner.programs import LLVM, matmul
from tuner.search.drafts import Draft, Neighbourhood
from tuner.search.individual import Individual
from tuner.space.builtin import builtin_space
from tuner.space.design_space import DesignSpace
from tuner.types import Origin


@cache
def space() -> DesignSpace:
    return builtin_space(module_from_json(matmul().module_json), target_from(LLVM), 1)


def draft_of(schedule: Schedule) -> Draft:
    return Individual.of(schedule, Origin.RANDOM).draft


@cache
def seen() -> list[Draft]:
    traces = space().traces
    drawn = (space().replay(traces[seed % len(traces)], seed) for seed in range(1, 25))
    return [draft_of(schedule) for schedule in drawn if schedule is not None]


def neighbourhood(drafts: list[Draft]) -> Neighbourhood:
    found = Neighbourhood()
    for draft in drafts:
        found.learn(draft)
    return found


def around(mothers: list[Draft], draws: int, changes: int) -> list[tuple[Draft, int]]:
    return list(neighbourhood(seen()).around(mothers, draws, changes, np.random.default_rng(0)))


def differences(one: Draft, other: Draft) -> list[str]:
    """Kinds of the choices that differ, and the sketch."""
    kinds = [
        choice.kind
        for choice, mine, theirs in zip(one.sketch.choices, one.decisions, other.decisions, strict=True)
        if mine != theirs
    ]
    return kinds + ["sketch"] * (one.sketch.fixed != other.sketch.fixed)


def test_a_draft_is_what_its_replay_makes_of_it() -> None:
    accepted = 0
    for draft, _ in around(seen(), 60, 3):
        schedule = space().replay(draft.decided(), 1)
        if schedule is not None:
            accepted += 1
            assert draft_of(schedule).coordinates() == draft.coordinates()
    assert accepted > 40


def test_a_draft_of_a_program_at_hand_is_that_program() -> None:
    schedule = space().replay(space().traces[0], 3)
    assert schedule is not None
    again = space().replay(draft_of(schedule).decided(), 99)
    assert again is not None
    assert Individual.of(again, Origin.RANDOM).program == Individual.of(schedule, Origin.RANDOM).program
    assert draft_of(again).coordinates() == draft_of(schedule).coordinates()


def test_each_kind_of_choice_is_changed_one_at_a_time() -> None:
    changed = [differences(seen()[mother], draft) for draft, mother in around(seen(), 400, 1)]
    assert all(len(kinds) == 1 for kinds in changed)
    assert {kind for [kind] in changed} >= {"SamplePerfectTile", "SampleCategorical", "sketch"}


def test_several_choices_may_change() -> None:
    most = max(len(differences(seen()[mother], draft)) for draft, mother in around(seen(), 400, 3))
    assert most == 3


def test_tiles_keep_their_extents_and_limits() -> None:
    for draft, mother in around(seen(), 400, 3):
        decided = zip(draft.sketch.choices, draft.decisions, seen()[mother].decisions, strict=True)
        for choice, mine, theirs in decided:
            if choice.kind == "SamplePerfectTile":
                assert math.prod(mine) == math.prod(theirs)
                assert mine[-1] <= int(choice.instruction.attrs[1])


def test_none_is_drawn_twice_and_none_that_was_seen() -> None:
    mothers = seen()[:1]
    names = [frozenset(draft.coordinates().items()) for draft, _ in around(mothers, 600, 1)]
    assert len(names) == len(set(names)) > 20
    assert not set(names) & {frozenset(draft.coordinates().items()) for draft in seen()}
    known = neighbourhood(seen())
    for draft, _ in around(mothers, 600, 1):
        known.learn(draft)
    assert len(list(known.around(mothers, 600, 1, np.random.default_rng(0)))) == 0


def test_what_has_no_choice_has_no_neighbours() -> None:
    schedule = new_schedule(space().mod, 1)
    only = Draft.of(schedule.trace)
    assert only.decisions == ()
    assert list(neighbourhood([only]).around([only], 50, 3, np.random.default_rng(0))) == []

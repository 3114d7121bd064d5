"""Ablations: the neighbours of a program differ in one decision each, and are raced with it a few at a time."""

from __future__ import annotations

import math

import pytest

from loopwright.codegen.kinds import FailureKind, Origin, Stage
from loopwright.codegen.serialization import module_from_json, module_to_json, trace_to_json
from loopwright.codegen.target import canonical_target
from tests.support import own_intrinsics
from tests.support.rule_programs import TARGET
from tests.support.tuner_programs import matmul
from tuner.errors import RaceFailed
from tuner.inspection.answers import DecisionChange, Variant
from tuner.inspection.decisions import changes
from tuner.inspection.variants import variants
from tuner.ports import Meanwhile, Raced, RaceRequest, RaceResult, nothing_meanwhile
from tuner.races.ablation import Ablated, ablate
from tuner.space.builtin import builtin_space
from tuner.types import Failure, MeasureCandidate, Workload

OWN = "[[], []]"


def test_neighbours_of_a_rules_program_have_one_other_knob() -> None:
    workload = matmul()
    mod = module_from_json(workload.module_json)
    space = builtin_space(mod, TARGET, 1)
    replayed = space.replay(space.seeds[0], 1)
    assert replayed is not None
    own = trace_to_json(replayed.trace)
    [found] = variants(workload.module_json, canonical_target(TARGET), own, 9)
    assert found.outputs == (False, False, True)
    assert 2 <= len(found.found) <= 9
    for variant in found.found:
        [change] = variant.changes
        assert change.before != change.after
        assert variant.changes == changes(mod, own, variant.trace_json)
    assert len({variant.trace_json for variant in found.found} | {own}) == len(found.found) + 1
    # All decisions come in turn before one has a second neighbour.
    [few] = variants(workload.module_json, canonical_target(TARGET), own, 3)
    assert len({variant.changes[0].name for variant in few.found}) == 3


def test_a_tile_of_tvms_own_rules_moves_a_divisor_between_its_inner_levels() -> None:
    workload = matmul()
    space = builtin_space(module_from_json(workload.module_json), TARGET, 1)
    drawn = (space.replay(trace, seed) for seed in range(1, 40) for trace in space.traces)
    tiled = (s for s in drawn if s is not None and any(str(i.kind.name) == "SamplePerfectTile" for i in s.trace.insts))
    [found] = variants(workload.module_json, canonical_target(TARGET), trace_to_json(next(tiled).trace), 28)
    tiles = [variant.changes for variant in found.found if ": tile " in variant.changes[0].name]
    assert tiles
    for one in tiles:
        assert len(one) == 2
        before, after = (math.prod(int(getattr(change, side)) for change in one) for side in ("before", "after"))
        assert before == after


def test_the_intrinsics_that_a_trace_names_are_registered_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The space does not always register them: another process may have, when it drew its traces."""
    own, named = own_intrinsics.trace(), own_intrinsics.recorded(monkeypatch)
    [found] = variants(module_to_json(own_intrinsics.WORKLOAD), canonical_target(TARGET), own, 3)
    assert found.found
    assert named
    assert all(name in own for name in named)


class Fleet:
    """Races each program at the seconds that its trace names; what names none fails."""

    def __init__(self) -> None:
        self.races: list[RaceRequest] = []

    def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        self.races.append(request)
        entries = {key: self._entry(trace) for key, trace in request.contenders.items()}
        return RaceResult(Raced((), 0.0, 0.0), entries)

    def _entry(self, trace: str) -> Raced | Failure:
        if not trace.replace(".", "").isdigit():
            return Failure(Stage.CERTIFY, FailureKind.WRONG_RESULT, f"{trace} is wrong")
        return Raced(tuple(float(trace) * noise for noise in (1.0, 1.01, 0.99, 1.0, 1.0)), 0.0, 0.0)


def ablated(own: str, *traces: str) -> tuple[list[Ablated], Fleet]:
    fleet = Fleet()
    neighbours = [Variant((DecisionChange("unroll", own, trace),), trace) for trace in traces]
    workload = Workload("w", "family", "f", "module", "", ())
    found = ablate(workload, (), own, neighbours, fleet, meanwhile=nothing_meanwhile)  # type: ignore[arg-type]
    return found, fleet


def test_each_race_has_the_program_itself_and_the_order_is_kept() -> None:
    found, fleet = ablated("2.0", *(f"{2 + n}" for n in range(1, 10)))
    assert [len(race.contenders) for race in fleet.races] == [8, 3]
    own = MeasureCandidate("2.0", Origin.MUTATION).hash
    assert all(race.contenders[own] == "2.0" and not race.yardsticks for race in fleet.races)
    assert [each.slowdown.value for each in found if each.slowdown] == pytest.approx(
        [(2 + n) / 2 for n in range(1, 10)]
    )
    assert [each.changes[0].after for each in found] == [f"{2 + n}" for n in range(1, 10)]
    assert all(each.slowdown and each.slowdown.low <= each.slowdown.value <= each.slowdown.high for each in found)


def test_a_neighbour_that_fails_is_named_and_the_others_count() -> None:
    found, _ = ablated("2.0", "bad", "1.0")
    assert (found[0].seconds, found[0].slowdown, found[0].message) == (None, None, "bad is wrong")
    assert found[1].slowdown is not None
    assert found[1].slowdown.high < 1.0


def test_a_program_that_fails_itself_is_not_compared() -> None:
    with pytest.raises(RaceFailed, match="own is wrong"):
        ablated("own", "1.0")

"""The ablation: every change changes the search, and the report shows what the runs say."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.search.ablation.remembering import RememberingFleet
from benchmarks.search.ablation.report import NOT_RUN, REPORT, Effect, Ratio, packed, values
from benchmarks.search.ablation.run import COLD, REFERENCE, WARM, CurveLedger
from benchmarks.spread import bootstrap, interval
from loopwright.codegen.kinds import FailureKind, Stage
from tests.support.tuner_programs import LLVM, matmul, task
from tuner.budget import Budget
from tuner.ports import MeasureRequest
from tuner.search.config import SearchConfig
from tuner.search.request import TuneRequest
from tuner.search.searcher import Searcher
from tuner.testing.simulated_fleet import SimulatedFleet
from tuner.tune import tune
from tuner.types import Failure, Outcome


def lines(*, without: float, later: float = 1.0, cells: int = 8) -> list[dict[str, Any]]:
    """Return an ablation of one mechanism, without which latencies are so many times as high after the first batch.

    ``later``: how many times as high after the last trial. Cells differ by a factor of up to two, arms by 1 %.
    """
    plan = {
        "kind": "plan",
        "key": "k",
        "trials": 24,
        "warm": False,
        "mechanisms": {REFERENCE: "nothing", "rules": "TVM's"},
    }
    return [plan, *(run for seed in range(cells) for run in _cell(seed, without, later))]


def _cell(seed: int, without: float, later: float) -> Iterator[dict[str, Any]]:
    draw = random.Random(seed)
    place = {"kind": "run", "key": "k", "machine": "m", "workload": "ab"[seed % 2], "seed": seed}
    latency = 1e-4 * draw.uniform(1, 2)
    for arm, factor, last in ((REFERENCE, 1.0, 1.0), ("rules", without, later)):
        noise = draw.uniform(0.99, 1.01)
        way = [None, *[2 * latency] * 7, *[latency * factor * noise] * 15, latency * last * noise]
        yield place | {"arm": arm, "best": way}


def verdict(found: list[dict[str, Any]]) -> list[str]:
    (row,) = [line for line in REPORT.render(found).splitlines() if line.startswith("| rules |")]
    return [cell.strip() for cell in row.strip("|").split("|")][2:]


@pytest.mark.parametrize("name", [name for name in (*COLD, *WARM) if name not in (REFERENCE, "twin")])
def test_every_ablation_changes_the_search(name: str) -> None:
    arm = (COLD | WARM)[name]
    assert arm.change(SearchConfig()) != SearchConfig() or not (arm.relatives and arm.base_model)


def test_a_mechanism_helps_if_the_search_is_behind_without_it() -> None:
    cells, way, final, says = verdict(lines(without=1.05))
    assert (cells, says) == ("8", "helps")
    assert float(way.split()[0]) == pytest.approx(1 / 1.05, rel=0.01)
    assert float(final.split()[0]) == pytest.approx(1.0, rel=0.01)


def test_a_mechanism_hurts_if_the_search_is_ahead_without_it() -> None:
    assert verdict(lines(without=1.0, later=0.9))[-1] == "**hurts**"
    assert verdict(lines(without=1.1, later=0.9))[-1] == "helps and **hurts**"


def test_an_effect_within_the_noise_is_not_shown() -> None:
    assert verdict(lines(without=1.0))[-1] == "not shown"


def test_a_search_that_exhausts_its_space_keeps_what_it_has() -> None:
    ratio = Ratio.of("w", [1.0] * 10 + [0.5] * 10, [1.0] * 12)
    assert ratio.final == 0.5
    assert ratio.on_the_way == pytest.approx(0.5 ** (10 / 12))
    assert Effect.over([ratio, ratio]).final.high == pytest.approx(0.5)


def test_only_runs_of_the_last_plan_are_packed_and_nothing_is_said_of_what_did_not_run() -> None:
    new = lines(without=1.05)
    old = [line | {"key": "old"} for line in lines(without=1.0)]
    outcome = {"kind": "outcome", "key": "k", "program": "p", "outcome": [1.0]}
    assert list(packed([*old, *new, outcome])) == new
    assert values(new)["warm"] == NOT_RUN
    assert values([{"kind": "plan", "trials": 96}])["cold"] == NOT_RUN


def test_an_interval_is_students() -> None:
    """Of 1, 2 and 4 the logarithms have mean log 2 and standard error log 2 / sqrt 3; t(0.975, 2) is 4.303."""
    found = interval([1.0, 2.0, 4.0])
    assert found.mean == pytest.approx(2.0)
    assert found.high / found.mean == pytest.approx(found.mean / found.low)
    assert found.high == pytest.approx(2 * 2 ** (4.303 / 3**0.5), rel=1e-3)
    constant = interval([1.5, 1.5])
    assert [constant.mean, constant.low, constant.high] == pytest.approx([1.5] * 3)


def test_a_bootstrap_draws_within_groups() -> None:
    """That the groups differ is no noise: an interval of groups without noise has no width."""
    constant = bootstrap([[1.0, 1.0], [4.0, 4.0, 4.0]])
    assert [constant.mean, constant.low, constant.high] == pytest.approx([2.0] * 3)
    draw = random.Random(0)
    noisy = bootstrap([[math.exp(draw.gauss(0, 0.1)) for _ in range(100)]])
    assert noisy.high / noisy.low == pytest.approx(math.exp(2 * 1.96 * 0.01), rel=0.02)


class Unsteady(SimulatedFleet):
    """Outcomes arrive late and in any order, and the first attempt at a program is lost."""

    def __init__(self, seed: int) -> None:
        super().__init__(LLVM, per_collect=100)
        self._draw = random.Random(seed)
        self._ready: list[tuple[str, Outcome]] = []
        self._lost: set[str] = set()

    def collect(self, timeout: float) -> list[tuple[str, Outcome]]:
        self._ready += super().collect(timeout)
        self._draw.shuffle(self._ready)
        return [self._ready.pop()] if self._ready and self._draw.random() < 0.5 else []

    def _outcome(self, request: MeasureRequest) -> Outcome:
        assert request.cutoff is None
        if request.trace_json is not None and not self._lost:
            self._lost.add(request.key)
            return Failure(Stage.RUN, FailureKind.DEVICE_LOST, "gone", "simulated")
        return super()._outcome(request)


def searched(fleet: SimulatedFleet, known: dict[str, Outcome], config: SearchConfig) -> list[float | None]:
    """Search with a seed, and return the best so far after each trial."""
    request = TuneRequest([task(matmul())], LLVM, None, Budget(24), 7, config=config)
    ledger = CurveLedger()
    tune(request, Searcher(request), RememberingFleet(fleet, known, known.__setitem__), ledger)
    assert ledger.certificates
    return ledger.best


def test_equal_searches_are_equal_whatever_the_order_in_which_a_fleet_answers() -> None:
    """The lost program has no latency in the first search, so it is measured in the second."""
    known: dict[str, Outcome] = {}
    searched(Unsteady(0), known, SearchConfig())
    alone = searched(SimulatedFleet(LLVM), {}, SearchConfig())
    again, other = SimulatedFleet(LLVM), SimulatedFleet(LLVM)
    assert searched(again, known, SearchConfig()) == alone
    searched(other, known, SearchConfig())
    assert len(again.submitted) >= 1
    assert not other.submitted


def test_a_search_without_a_mechanism_proposes_the_same_until_the_mechanism_counts() -> None:
    known: dict[str, Outcome] = {}
    whole = searched(SimulatedFleet(LLVM), known, SearchConfig())
    fleet = SimulatedFleet(LLVM)
    without = searched(fleet, known, COLD["models"].change(SearchConfig()))
    assert without[:16] == whole[:16]
    assert 0 < len(fleet.submitted) <= 8

"""The contract of `tuner.ports.Search`. A test class inherits it, and opens searches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import tvm

from loopwright.codegen.functions import write_only
from loopwright.codegen.kinds import FailureKind, Origin, Stage
from loopwright.codegen.serialization import module_from_json
from tuner.budget import Budget
from tuner.ports import Search, nothing_meanwhile
from tuner.search.request import TuneRequest
from tuner.types import BASELINE, Failure, MeasureCandidate, Measured, TaskSpec, Trial, Workload
from tuner.workload import make_workload

LLVM = '{"kind": "llvm", "num-cores": 2}'
Opens = Callable[[TuneRequest], Search]

_PRODUCT = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer(({n}, {n}), "float32"), B: T.Buffer(({n}, {n}), "float32"), C: T.Buffer(({n}, {n}), "float32")):
    for i, j, k in T.grid({n}, {n}, {n}):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


def product(n: int) -> Workload:
    return make_workload(tvm.script.from_source(_PRODUCT.format(n=n)), f"product{n}")


def request(*workloads: Workload, space: list[object] | None = None) -> TuneRequest:
    return TuneRequest([TaskSpec(each, 1) for each in workloads], LLVM, space, Budget(100), seed=1)


def measured(latency: float) -> Measured:
    return Measured((latency, latency * 1.01, latency * 0.99), "worker")


class SearchContract:
    @pytest.fixture
    def opens(self) -> Opens:
        """Opens a search for a request. The fixture closes it."""
        raise NotImplementedError

    def opened(self, opens: Opens, wanted: TuneRequest) -> Search:
        search = opens(wanted)
        for number, spec in enumerate(wanted.tasks):
            search.read(number, spec, nothing_meanwhile)
            assert search.open(number, [], nothing_meanwhile)
        return search

    def test_reading_tells_what_is_only_written(self, opens: Opens) -> None:
        workload = product(32)
        search = opens(request(workload))
        outputs = search.read(0, TaskSpec(workload, 1), nothing_meanwhile)
        assert outputs == write_only(module_from_json(workload.module_json)["main"])
        assert outputs[:2] == (False, False)

    def test_proposals_are_distinct_and_complete(self, opens: Opens) -> None:
        search = self.opened(opens, request(product(64)))
        found = [each for _ in range(3) for each in search.propose(0, 8, nothing_meanwhile)]
        assert len({each.hash for each in found}) == 24
        for candidate in found:
            assert candidate.trace_json
            assert candidate.features
            assert candidate.origin in (Origin.SEED, Origin.RANDOM)

    def test_the_same_seed_proposes_the_same(self, opens: Opens) -> None:
        wanted = request(product(64))
        one, other = self.opened(opens, wanted), self.opened(opens, wanted)
        assert one.propose(0, 8, nothing_meanwhile) == other.propose(0, 8, nothing_meanwhile)

    def test_it_learns_from_what_it_observes(self, opens: Opens) -> None:
        search = self.opened(opens, request(product(64)))
        for _ in range(3):
            for number, candidate in enumerate(search.propose(0, 8, nothing_meanwhile)):
                search.observe(0, candidate, measured(1e-3 * (number + 1)))
        later = search.propose(0, 8, nothing_meanwhile)
        assert any(each.origin is Origin.MUTATION and each.predicted is not None for each in later)
        assert all((each.predicted is None) == (each.predicted_by is None) for each in later)

    def test_failed_and_lost_trials_are_observed(self, opens: Opens) -> None:
        search = self.opened(opens, request(product(64)))
        for kind in FailureKind:
            for candidate in search.propose(0, 4, nothing_meanwhile):
                search.observe(0, candidate, Failure(Stage.RUN, kind, "it failed"))
        assert len(search.propose(0, 4, nothing_meanwhile)) == 4

    def test_a_history_is_taken_up(self, opens: Opens) -> None:
        wanted = request(product(64))
        found = self.opened(opens, wanted).propose(0, 16, nothing_meanwhile)
        history = [Trial("baseline", BASELINE, measured(1.0))]
        history += [Trial(str(i), each, measured(1e-3 * (i + 1))) for i, each in enumerate(found[:12])]
        history += [Trial(str(i), each, None) for i, each in enumerate(found[12:])]
        search = opens(wanted)
        search.read(0, wanted.tasks[0], nothing_meanwhile)
        assert search.open(0, history, nothing_meanwhile)
        for candidate in found[12:]:
            search.observe(0, candidate, measured(1e-2))
        more = search.propose(0, 8, nothing_meanwhile)
        assert not {each.hash for each in more} & {each.hash for each in found}
        assert {each.parent for each in more} & {each.hash for each in found}

    def test_known_traces_come_first(self, opens: Opens) -> None:
        wanted = request(product(64))
        [known, *_] = self.opened(opens, wanted).propose(0, 8, nothing_meanwhile)
        assert known.trace_json is not None
        spec = replace(wanted.tasks[0], known=(known.trace_json,))
        again = self.opened(opens, replace(wanted, tasks=[spec])).propose(0, 8, nothing_meanwhile)
        assert again[0].trace_json == known.trace_json

    def test_the_choice_is_the_first_proposal_unless_it_is_barred(self, opens: Opens) -> None:
        wanted = request(product(64))
        search = self.opened(opens, wanted)
        [first, second] = [*search.propose(0, 1, nothing_meanwhile), *search.propose(0, 1, nothing_meanwhile)]
        assert search.choose(0, nothing_meanwhile) == replace(first, features=None)
        assert first.trace_json is not None
        assert second.trace_json is not None
        spec = replace(wanted.tasks[0], barred=(first.trace_json,))
        for known in ((), ("[]", second.trace_json)):
            search = opens(replace(wanted, tasks=[spec]))
            search.read(0, replace(spec, known=known), nothing_meanwhile)
            chosen = search.choose(0, nothing_meanwhile)
            assert chosen is not None
            assert (chosen.trace_json == second.trace_json) if known else (chosen.trace_json != first.trace_json)

    def test_a_users_traces_that_do_not_fit_are_refused(self, opens: Opens) -> None:
        unknown = [[["GetSBlock", [], ["nowhere", "main"], ["b0"]]], []]
        search = opens(request(product(64), space=[unknown]))
        search.read(0, TaskSpec(product(64), 1), nothing_meanwhile)
        assert not search.open(0, [], nothing_meanwhile)

    def test_tasks_are_apart(self, opens: Opens) -> None:
        search = self.opened(opens, request(product(64), product(48)))
        first: list[MeasureCandidate] = search.propose(0, 4, nothing_meanwhile)
        second = search.propose(1, 4, nothing_meanwhile)
        search.observe(1, second[0], measured(1e-3))
        search.observe(0, first[0], measured(1e-3))
        assert len(search.propose(1, 4, nothing_meanwhile)) == len(search.propose(0, 4, nothing_meanwhile)) == 4

"""The search in a child behind walls: it keeps to the contract, and what goes wrong with a task harms no other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import psutil
import pytest

from loopwright.codegen.kinds import Origin
from tuner.errors import SearchFailed
from tuner.ports import nothing_meanwhile
from tuner.search.request import TuneRequest
from tuner.testing.search_contract import Opens, SearchContract, measured, product, request
from tuner.types import Workload
from workers.child import walled_search
from workers.child.walled_search import SECONDS, WalledSearch, search_child, train_base
from workers.child.warm_child import WarmChild
from workers.walls.levels import Level, Policy, choose

MEMORY = 2**30
FAULTY = "tests.support.faulty_search"


@pytest.fixture(scope="module")
def children() -> Iterator[list[WarmChild]]:
    """Two, because a child serves one search at a time."""
    children = [search_child(choose(Policy.PREFER)), search_child(Level.LANDLOCK)]
    yield children
    for child in children:
        child.close()


@pytest.mark.whole
class TestWalledSearch(SearchContract):
    @pytest.fixture
    def opens(self, children: list[WarmChild]) -> Iterator[Opens]:
        opened: list[WalledSearch] = []

        def open_next(wanted: TuneRequest) -> WalledSearch:
            opened.append(WalledSearch(children[len(opened) % 2], wanted))
            if len(opened) > 2:
                opened[-3].close()
            return opened[-1]

        yield open_next
        for search in opened:
            search.close()


@pytest.fixture(scope="module")
def faulty_child() -> Iterator[WarmChild]:
    child = WarmChild([FAULTY], memory_bytes=MEMORY, busy=True, level=choose(Policy.PREFER))
    yield child
    child.close()


@pytest.fixture
def faulty(faulty_child: WarmChild, monkeypatch: pytest.MonkeyPatch) -> WarmChild:
    monkeypatch.setattr(walled_search, "SEARCH", FAULTY)
    return faulty_child


def named(workload: Workload, name: str) -> Workload:
    return replace(workload, name=name)


def _kill(child: WarmChild) -> None:
    """Kill all of a child's processes, as the kernel does when memory is short."""
    assert child._process is not None
    leader = psutil.Process(child._process.pid)
    for process in [*leader.children(recursive=True), leader]:
        process.kill()


def begin(search: WalledSearch, wanted: TuneRequest, number: int) -> None:
    search.read(number, wanted.tasks[number], nothing_meanwhile)
    assert search.open(number, [], nothing_meanwhile)
    [candidate] = search.propose(number, 1, nothing_meanwhile)
    search.observe(number, candidate, measured(1e-3))


COMPLAINTS = {
    "spin": "took over 2 s",
    "memory": "GiB",
    "crash": "signal 11",
    "kill": "killed 3 times",
    "exit": "without an answer",
    "raise": "TVM says no",
}
IN_ROUND = {
    *(("open", "memory"), ("propose", "crash"), ("read", "raise"), ("propose", "kill")),
}


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        pytest.param(method, fault, marks=[] if (method, fault) in IN_ROUND else [pytest.mark.whole])
        for method in ("read", "open", "propose")
        for fault in COMPLAINTS
    ],
)
def test_a_fault_costs_the_task_and_no_other(faulty: WarmChild, method: str, fault: str) -> None:
    complaint = COMPLAINTS[fault]
    wanted = request(product(32), named(product(48), f"{method} {fault}"), product(64))
    with closing(WalledSearch(faulty, wanted, seconds=2.0 if fault == "spin" else 30.0)) as search:
        begin(search, wanted, 0)
        with pytest.raises(SearchFailed, match=complaint):
            begin(search, wanted, 1)
        begin(search, wanted, 2)
        for number in (0, 2):
            assert len(search.propose(number, 4, nothing_meanwhile)) == 4
        with pytest.raises(SearchFailed, match=complaint):
            search.propose(1, 1, nothing_meanwhile)


def test_an_impossible_answer_fails_the_task(faulty: WarmChild) -> None:
    wanted = request(named(product(32), "read lie"))
    with closing(WalledSearch(faulty, wanted)) as search, pytest.raises(SearchFailed, match="impossible answer"):
        search.read(0, wanted.tasks[0], nothing_meanwhile)


def test_a_child_that_is_killed_between_questions_is_replaced_and_knows_all(children: list[WarmChild]) -> None:
    wanted = request(product(64))
    with closing(WalledSearch(children[0], wanted)) as search:
        search.read(0, wanted.tasks[0], nothing_meanwhile)
        search.open(0, [], nothing_meanwhile)
        found = search.propose(0, 12, nothing_meanwhile)
        for number, candidate in enumerate(found):
            search.observe(0, candidate, measured(1e-3 * (number + 1)))
        _kill(children[0])
        more = search.propose(0, 8, nothing_meanwhile)
        assert len(more) == 8
        assert not {each.hash for each in more} & {each.hash for each in found}
        assert any(each.origin is Origin.MUTATION for each in more)


def test_what_is_raised_meanwhile_ends_the_search_long_before_its_deadline(faulty: WarmChild) -> None:
    def stop() -> None:
        raise TimeoutError

    wanted = request(named(product(48), "open spin"), product(32))
    with closing(WalledSearch(faulty, wanted)) as search:
        search.read(0, wanted.tasks[0], nothing_meanwhile)
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            search.open(0, [], stop)
        assert time.monotonic() - started < SECONDS / 2
        search.read(1, wanted.tasks[1], nothing_meanwhile)
        assert search.open(1, [], nothing_meanwhile)


def test_a_base_model_is_trained_and_used(children: list[WarmChild]) -> None:
    wanted = request(product(64))
    with closing(WalledSearch(children[0], wanted)) as search:
        search.read(0, wanted.tasks[0], nothing_meanwhile)
        search.open(0, [], nothing_meanwhile)
        found = search.propose(0, 24, nothing_meanwhile)
    samples = [("product", each.features, 1e-3 * (i + 1)) for i, each in enumerate(found) if each.features]
    model = train_base(children[0], [*samples, ("product", samples[0][1], None)])
    wanted = replace(request(product(48)), base_model=model)
    with closing(WalledSearch(children[0], wanted)) as search:
        search.read(0, wanted.tasks[0], nothing_meanwhile)
        search.open(0, [], nothing_meanwhile)
        assert any(each.predicted is not None for each in search.propose(0, 8, nothing_meanwhile))

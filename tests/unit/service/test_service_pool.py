"""Children that are shared by callers: in the order of the calls, and none has them all."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from service.api.pool import Pool
from service.problems import ProblemError
from tests.support.waiting import wait_for


class Held:
    """Calls that use a child of the pool until they are told to end; ``order`` has their names as they began."""

    def __init__(self, children: int, waiting: int = 8, seconds: float = 20.0) -> None:
        stand_ins: list[Any] = [object() for _ in range(children)]
        self.pool = Pool(stand_ins, waiting, seconds)
        self.order: list[str] = []
        self._threads = ThreadPoolExecutor(16)
        self._ends: dict[str, threading.Event] = {}

    def call(self, name: str, caller: str | None) -> Future[None]:
        self._ends[name] = threading.Event()
        before = self.pool.load()
        called = self._threads.submit(self._hold, name, caller)
        wait_for("the call to be there", lambda: self.pool.load() != before or called.done())
        return called

    def end(self, name: str) -> None:
        self._ends[name].set()

    def close(self) -> None:
        for end in self._ends.values():
            end.set()
        self._threads.shutdown()

    def _hold(self, name: str, caller: str | None) -> None:
        with self.pool.child(caller, lambda: None):
            self.order.append(name)
            self._ends[name].wait(30)


@pytest.fixture
def held() -> Any:
    made = Held(2)
    yield made
    made.close()


def test_a_caller_leaves_a_child_to_others(held: Held) -> None:
    held.call("a1", "a")
    held.call("a2", "a")
    held.call("a3", "a")
    assert held.order == ["a1"]
    assert (held.pool.load().working, held.pool.load().waiting) == (1, 2)
    held.call("b1", "b")
    assert held.order == ["a1", "b1"]
    held.end("a1")
    wait_for("the next call", lambda: len(held.order) == 3)
    assert held.order == ["a1", "b1", "a2"]
    held.end("b1")
    held.end("a2")
    wait_for("the last call", lambda: len(held.order) == 4)


def test_calls_of_different_callers_take_turns_in_their_order(held: Held) -> None:
    for name in "abcd":
        held.call(name, name)
    for name, begun in zip("abcd", (3, 4, 4, 4), strict=True):
        held.end(name)
        wait_for("the next call", lambda begun=begun: len(held.order) == begun)  # type: ignore[misc]
    assert held.order == list("abcd")


def test_the_service_itself_may_have_all(held: Held) -> None:
    held.call("1", None)
    held.call("2", None)
    assert held.order == ["1", "2"]


def test_one_child_is_for_everybody() -> None:
    held = Held(1)
    try:
        held.call("a", "a")
        assert held.order == ["a"]
    finally:
        held.close()


def test_a_caller_that_waits_for_itself_is_told_to_come_back() -> None:
    held = Held(2, seconds=0.2)
    try:
        held.call("a1", "a")
        with pytest.raises(ProblemError) as raised:
            held.call("a2", "a").result(10)
    finally:
        held.close()
    assert (raised.value.status, raised.value.kind) == (503, "busy")

"""Sessions of a warm child, under everything that a hostile or broken function can do to them."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from loopwright.codegen.host import lock as host_lock
from tests.integration.workers.children import FUNCTIONS, LEVEL, SOON, alive, eventually, name, works
from workers.child.warm_child import ChildCrashed, ChildError, ChildLost, ChildRaised, ChildTimeout, WarmChild


def test_a_session_keeps_its_memory_and_no_longer(child: WarmChild) -> None:
    with child.session(name("answers"), {"start": 10}) as session:
        assert [session.ask(number, 30) for number in (1, 2, 3)] == [11, 13, 16]
        pid = session.ask("where", 30)
        assert alive(pid)
    assert eventually(lambda: not alive(pid))
    with child.session(name("answers"), {}) as session:
        assert session.ask(1, 30) == 1
    assert works(child)


def test_a_sessions_deadline_counts_while_it_answers_only(child: WarmChild) -> None:
    with child.session(name("answers"), {}) as session:
        assert session.ask(1, SOON) == 1
        time.sleep(2 * SOON)
        assert session.ask("wait", SOON) == "waited"
        assert session.ask(1, 30) == 2


@pytest.mark.parametrize(
    ("question", "error"),
    [("spin", ChildTimeout), ("crash", ChildCrashed), ("raise", ChildRaised), ("leave", ChildCrashed)],
)
def test_a_session_that_ends_says_so_and_the_child_goes_on(
    child: WarmChild, question: str, error: type[ChildError]
) -> None:
    with child.session(name("answers"), {}) as session:
        assert session.ask(1, 30) == 1
        with pytest.raises(error):
            session.ask(question, 1.0)
        with pytest.raises(ChildLost):
            session.ask(1, 30)
    assert works(child)


def test_what_is_done_meanwhile_can_end_a_session(child: WarmChild) -> None:
    class Enough(Exception):
        pass

    calls = []

    def meanwhile() -> None:
        calls.append(time.monotonic())
        if len(calls) == 10:
            raise Enough

    with child.session(name("answers"), {}) as session:
        pid = session.ask("where", 30)
        with pytest.raises(Enough):
            session.ask("spin", 600, meanwhile)
    assert not alive(pid)
    assert works(child)


def test_a_killed_fork_ends_the_session_between_questions(child: WarmChild) -> None:
    with child.session(name("answers"), {}) as session:
        os.kill(session.ask("where", 30), signal.SIGKILL)
        with pytest.raises(ChildError):
            session.ask(1, 30)
    assert works(child)


@pytest.mark.whole
def test_a_timing_need_not_wait_for_a_session_that_is_not_asked() -> None:
    """Its fork shares the host's lock while it works on an answer only, and is stopped then."""
    child = WarmChild([FUNCTIONS], busy=True, level=LEVEL)
    try:
        with child.session(name("answers"), {}) as session:
            assert session.ask(1, 30) == 1
            with host_lock.quiet():
                pass
            with ThreadPoolExecutor(1) as pool:
                spinning = pool.submit(session.ask, "spin", 3.0)
                time.sleep(0.5)
                with host_lock.quiet():
                    time.sleep(0.2)
                with pytest.raises(ChildTimeout):
                    spinning.result()
    finally:
        child.close()

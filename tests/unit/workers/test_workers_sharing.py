"""Whose turn it is at actors that several loops use."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.ray.sharing import Share, Sharing


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sharing(clock: Clock) -> Sharing:
    return Sharing(clock)


def loop(sharing: Sharing, trials: int, priority: int = 0) -> Share:
    made = sharing.share(priority, ["b"], ["a"])
    made.trials = trials
    return made


def turn(sharing: Sharing, loops: list[Share], actor: str = "a") -> Share:
    """All wait for one actor that has no call: the loop that gets it."""
    for each in loops:
        each.awaits([actor])
    served = [each for each in loops if each.take({actor: 1}) is not None]
    assert len(served) == 1
    served[0].give_back(actor)
    return served[0]


def test_all_loops_together_have_so_many_calls(sharing: Sharing) -> None:
    one, other = loop(sharing, 8), loop(sharing, 8)
    assert one.take({"a": 1, "b": 1}) == "a"
    assert other.take({"a": 1, "b": 1}) == "b"
    assert one.take({"a": 1, "b": 1}) is None
    other.give_back("b")
    assert one.take({"a": 1, "b": 1}) == "b"


def test_the_least_busy_actor_is_taken_whoever_keeps_it_busy(sharing: Sharing) -> None:
    one, other = loop(sharing, 8), loop(sharing, 8)
    assert [one.add({"a": 1}), one.add({"a": 1}), other.add({"b": 1})] == ["a", "a", "b"]
    assert other.take({"a": 4, "b": 4}) == "b"
    assert other.take({"a": 2, "b": 2}) is None


def test_the_loop_with_the_least_left_is_first(sharing: Sharing) -> None:
    large, small, other = loop(sharing, 2000), loop(sharing, 16), loop(sharing, 16)
    assert turn(sharing, [large, small, other]) is small
    other.trials = 15
    assert turn(sharing, [large, small, other]) is other


def test_a_loop_that_waits_for_another_actor_is_passed_over(sharing: Sharing) -> None:
    large, small = loop(sharing, 2000), loop(sharing, 16)
    small.awaits(["b"])
    assert large.take({"a": 1, "b": 1}) == "a"


def test_priority_comes_before_what_is_left(sharing: Sharing) -> None:
    assert turn(sharing, [loop(sharing, 16), wanted := loop(sharing, 2000, priority=5)]) is wanted


def test_a_loop_whose_time_ends_soon_is_first(sharing: Sharing, clock: Clock) -> None:
    small, hurried = loop(sharing, 64), loop(sharing, 2000)
    hurried.until = clock() + 10.0
    assert turn(sharing, [small, hurried]) is hurried


def test_a_long_loop_gets_on_while_short_ones_come_and_go(sharing: Sharing, clock: Clock) -> None:
    """Whether it wants more or not: a turn is one call."""
    large, small = loop(sharing, 2000), loop(sharing, 16)
    served = []
    for _ in range(100):
        clock.now += 0.1
        served.append(turn(sharing, [large, small]))
    assert 8 <= served.count(large) <= 12


def begun(sharing: Sharing, trials: int) -> Share:
    made = loop(sharing, trials)
    made.begin(lambda: pytest.fail("it need not wait"))
    return made


def test_a_loop_begins_when_few_are_ahead_of_it(sharing: Sharing) -> None:
    first = [begun(sharing, 16) for _ in range(3)]
    begun(sharing, 8)
    last = loop(sharing, 16)
    asked = threading.Event()

    def is_to() -> bool:
        asked.set()
        return True

    waiting = threading.Thread(target=last.begin, args=[is_to])
    waiting.start()
    assert asked.wait(60.0)
    assert not last.has_begun
    first[0].close()
    assert not last.has_begun
    first[1].close()
    waiting.join()
    assert last.has_begun


def test_the_loop_with_the_least_left_leads_whether_it_waits_or_not(sharing: Sharing) -> None:
    large = begun(sharing, 2000)
    assert large.leads
    waits_to_begin = loop(sharing, 16)
    assert large.leads
    waits_to_begin.has_begun = True
    assert [large.leads, waits_to_begin.leads] == [False, True]
    waits_to_begin.close()
    assert large.leads


def test_a_long_loop_keeps_no_short_one_from_beginning(sharing: Sharing) -> None:
    for _ in range(5):
        begun_long = loop(sharing, 2000)
        begun_long.has_begun = True
    begun(sharing, 16)


def test_loops_of_other_machines_are_not_in_the_way(sharing: Sharing) -> None:
    for _ in range(5):
        begun_here = loop(sharing, 16)
        begun_here.has_begun = True
    other = sharing.share(0, ["builder there"], ["measurer there"])
    other.trials = 2000
    other.begin(lambda: pytest.fail("it need not wait"))
    assert other.leads


def test_with_more_measurers_more_loops_begin(sharing: Sharing) -> None:
    for _ in range(9):
        made = sharing.share(0, ["b"], [f"measurer {number}" for number in range(8)])
        made.trials = 16
        made.begin(lambda: pytest.fail("it need not wait"))


def test_a_loop_that_waits_for_long_begins_all_the_same(sharing: Sharing, clock: Clock) -> None:
    for _ in range(3):
        begun(sharing, 16)

    def pass_time() -> bool:
        clock.now += 10.0
        return True

    loop(sharing, 2000).begin(pass_time)
    assert clock.now == 30.0


def test_a_loop_that_is_not_to_begin_waits_no_more(sharing: Sharing) -> None:
    for _ in range(3):
        begun(sharing, 16)
    loop(sharing, 2000).begin(lambda: False)


def test_a_loop_that_says_no_more_that_it_waits_holds_nobody_up(sharing: Sharing, clock: Clock) -> None:
    hung, other = loop(sharing, 1), loop(sharing, 8)
    hung.awaits(["a"])
    assert other.take({"a": 1}) is None
    clock.now += 3.0
    assert other.take({"a": 1}) == "a"


def test_a_closed_loop_has_neither_calls_nor_wishes(sharing: Sharing) -> None:
    ended, other = loop(sharing, 1), loop(sharing, 8)
    ended.add({"a": 1})
    ended.awaits(["a"])
    ended.close()
    assert other.take({"a": 1}) == "a"


@pytest.mark.parametrize("end", [lambda share: share.give_back("a"), Share.close, lambda share: share.awaits([])])
def test_a_loop_that_waits_is_woken(sharing: Sharing, end) -> None:  # type: ignore[no-untyped-def]
    first, second = loop(sharing, 1), loop(sharing, 8)
    first.add({"a": 1})
    first.awaits(["a"])
    assert second.take({"a": 2}) is None
    woken: list[bool] = []
    waiting = threading.Thread(target=lambda: woken.append(second.wait(60.0)))
    waiting.start()
    end(first)
    waiting.join()
    assert woken == [True]


def test_a_change_before_the_wait_is_not_missed(sharing: Sharing) -> None:
    first, second = loop(sharing, 1), loop(sharing, 8)
    first.add({"a": 1})
    assert second.take({"a": 1}) is None
    first.give_back("a")
    assert second.take({"b": 0}) is None
    assert second.wait(0.0)
    assert not second.wait(0.0)


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=200),
)
def test_whatever_comes_somebody_is_served_and_the_limit_holds(
    trials: list[int], steps: list[tuple[int, bool]]
) -> None:
    clock = Clock()
    sharing = Sharing(clock)
    loops = [loop(sharing, count) for count in trials]
    for number, gives_back in steps:
        clock.now += 0.3
        one = loops[number % len(loops)]
        if gives_back and one.calls["a"]:
            one.give_back("a")
        for each in loops:
            each.awaits(["a"])
        while any(each.take({"a": 2}) for each in loops):
            pass
        assert sum(each.calls["a"] for each in loops) == 2


def test_only_actors_of_this_process_s_turn_are_called(sharing: Sharing) -> None:
    one, valid = loop(sharing, 8), True
    sharing.restrict(["b"], lambda: valid)
    assert one.take({"a": 1}) is None
    assert one.add({"a": 1}) is None
    assert [one.take({"a": 1, "b": 1}), one.add({"a": 9, "b": 1})] == ["b", "b"]
    sharing.restrict(["a"], lambda: valid)
    assert one.wait(0.0)
    assert one.take({"a": 1, "b": 9}) == "a"
    valid = False
    assert one.add({"a": 9}) is None


def test_a_loop_wishes_while_it_waits_or_has_calls_and_a_moment_longer(sharing: Sharing, clock: Clock) -> None:
    long, short, idle = loop(sharing, 200), loop(sharing, 8), loop(sharing, 1)
    assert sharing.wishes() == []
    long.awaits(["a"])
    assert short.add({"b": 1}) == "b"
    first, second = sharing.wishes()
    assert (first.trials, first.actors, first.busy) == (8, {"a", "b"}, {"b"})
    assert (second.trials, second.seconds, second.busy) == (200, 50.0, frozenset())
    assert len({idle.number, first.number, second.number}) == 3
    clock.now += 6.0
    assert [wish.number for wish in sharing.wishes()] == [first.number]
    short.give_back("b")
    clock.now += 4.0
    assert [wish.number for wish in sharing.wishes()] == [first.number]
    clock.now += 2.0
    assert sharing.wishes() == []

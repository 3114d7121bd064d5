"""A warm child under everything that a hostile or broken function can do to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from loopwright.codegen.host import lock as host_lock
from tests.integration.workers.children import FUNCTIONS, LEVEL, SOON, alive, eventually, name, works
from workers.child import warm_child
from workers.child.warm_child import (
    ChildCrashed,
    ChildError,
    ChildLost,
    ChildRaised,
    ChildStopped,
    ChildTimeout,
    WarmChild,
)
from workers.walls.levels import Level

CHECKOUT = Path(__file__).resolve().parents[3]


def test_values_stream_in_order(child: WarmChild) -> None:
    assert list(child.stream(name("values"), {"items": [1, None, "a", {"b": [2.5]}]}, 30)) == [
        1,
        None,
        "a",
        {"b": [2.5]},
    ]


def test_a_large_value_passes_both_ways(child: WarmChild) -> None:
    text = "x" * 5_000_000
    assert child.call(name("values"), {"items": [text]}, 30) == text


def test_the_deadline_is_for_each_value(child: WarmChild) -> None:
    assert list(child.stream(name("values"), {"items": [1, 2, 3, 4], "pause": 0.5}, 1.5)) == [1, 2, 3, 4]


def test_waiting_for_others_does_not_count(child: WarmChild) -> None:
    assert child.call(name("waits"), {"seconds": 1.5}, 0.7) == "waited"


def test_call_wants_exactly_one_value(child: WarmChild) -> None:
    with pytest.raises(ChildCrashed) as caught:
        child.call(name("values"), {"items": [1, 2]}, 30)
    assert "2 values" in caught.value.stderr
    assert works(child)


@pytest.mark.parametrize("function", ["spin", "deaf"])
def test_what_does_not_answer_is_killed(child: WarmChild, function: str) -> None:
    with pytest.raises(ChildTimeout):
        list(child.stream(name(function), {}, SOON))
    assert works(child)


def test_nothing_that_a_function_started_outlives_its_deadline(child: WarmChild) -> None:
    stream = child.stream(name("family"), {}, 3)
    started = next(stream)
    assert [alive(pid) for pid in started] == [True] * 3
    with pytest.raises(ChildTimeout):
        next(stream)
    assert not any(alive(pid) for pid in started)
    assert works(child)


@pytest.mark.parametrize(
    ("function", "number", "words"),
    [
        ("segfault", signal.SIGSEGV, ""),
        ("leave", None, "going"),
        ("kill_self", signal.SIGKILL, ""),
        ("shout", signal.SIGABRT, "the last words"),
    ],
)
def test_a_death_is_told_with_its_signal_and_last_words(
    child: WarmChild, function: str, number: int | None, words: str
) -> None:
    with pytest.raises(ChildCrashed) as caught:
        child.call(name(function), {}, 30)
    assert caught.value.signal == number
    assert words in caught.value.stderr
    assert len(caught.value.stderr) <= 2000
    assert works(child)


def test_an_exception_is_told_with_its_name(child: WarmChild) -> None:
    with pytest.raises(ChildRaised, match="no such thing") as caught:
        child.call(name("fail"), {"message": "no such thing"}, 30)
    assert caught.value.kind == "KeyError"


@pytest.mark.parametrize(
    ("function", "kind"), [("unspeakable", "PydanticSerializationError"), ("nothing_of_the_kind", "AttributeError")]
)
def test_what_cannot_be_run_or_sent_is_an_exception(child: WarmChild, function: str, kind: str) -> None:
    with pytest.raises(ChildRaised) as caught:
        child.call(name(function), {}, 30)
    assert caught.value.kind == kind
    assert works(child)


def test_a_value_too_long_for_a_frame_is_an_exception(child: WarmChild) -> None:
    with pytest.raises(ChildRaised, match="does not fit"):
        child.call(name("too_long"), {"size": 2**28 + 1}, 60)
    assert works(child)


def test_memory_is_limited_in_the_fork_only() -> None:
    child = WarmChild([FUNCTIONS], memory_bytes=300 * 2**20, level=LEVEL)
    try:
        assert child.call(name("allocate"), {"size": 2**20}, 30) == 2**20
        with pytest.raises(ChildRaised, match="out of memory"):
            child.call(name("allocate"), {"size": 2**30}, 30)
        assert works(child)
    finally:
        child.close()


def test_a_child_that_nobody_needed_for_long_ends_and_starts_again(child: WarmChild) -> None:
    assert works(child)
    assert child._process is not None
    process = psutil.Process(child._process.pid)
    family = [process, *process.children(recursive=True)]
    child.rest(3600.0, 0.0)
    assert works(child)
    assert process.is_running()
    child.rest(0.0, 3600.0)
    assert not any(alive(each.pid) for each in family)
    child.rest(0.0, 0.0)
    assert works(child)


def test_a_child_at_work_does_not_rest(child: WarmChild) -> None:
    stream = child.stream(name("where"), {}, 30)
    place = next(stream)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(child.rest, 0.0, 0.0).result(30)
    assert alive(place["pid"])
    child.stop()
    with pytest.raises(ChildStopped):
        next(stream)
    assert works(child)


def test_killing_the_fork_is_told_and_the_child_goes_on(child: WarmChild) -> None:
    parents = []
    for _ in range(2):
        stream = child.stream(name("where"), {}, 30)
        place = next(stream)
        parents.append(place["parent"])
        os.kill(place["pid"], signal.SIGKILL)
        with pytest.raises(ChildCrashed) as caught:
            next(stream)
        assert caught.value.signal == signal.SIGKILL
    assert parents[0] == parents[1]


def test_killing_the_child_ends_its_fork_and_all_below_and_the_next_call_starts_another(child: WarmChild) -> None:
    stream = child.stream(name("family"), {}, 30)
    plain, *apart = next(stream)
    fork = psutil.Process(plain).ppid()
    os.kill(psutil.Process(fork).ppid(), signal.SIGKILL)
    with pytest.raises(ChildLost):
        next(stream)
    assert eventually(lambda: not alive(fork))
    assert eventually(lambda: not alive(plain))
    for pid in apart:  # in sessions of their own, with nobody left who knows them
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
    assert works(child)


def test_killing_the_idle_child(child: WarmChild) -> None:
    stream = child.stream(name("where"), {}, 1)
    parent = next(stream)["parent"]
    with pytest.raises(ChildTimeout):
        next(stream)
    os.kill(parent, signal.SIGKILL)
    assert eventually(lambda: not alive(parent))
    assert works(child)


def test_a_stopped_fork_is_killed_at_the_deadline(child: WarmChild) -> None:
    stream = child.stream(name("where"), {}, 1)
    pid = next(stream)["pid"]
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(ChildTimeout):
        next(stream)
    assert not alive(pid)
    assert works(child)


def test_a_stopped_child_is_replaced(child: WarmChild, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_child, "_GRACE_SECONDS", 0.5)
    stream = child.stream(name("where"), {}, 1)
    place = next(stream)
    os.kill(place["parent"], signal.SIGSTOP)
    with pytest.raises(ChildTimeout):
        next(stream)
    assert eventually(lambda: not alive(place["pid"]))
    assert eventually(lambda: not alive(place["parent"]))
    monkeypatch.undo()
    assert works(child)


def test_they_disappear_with_their_parent() -> None:
    program = (
        "from workers.child.warm_child import WarmChild; from workers.walls.levels import Level; import json\n"
        f"child = WarmChild([{FUNCTIONS!r}], level=Level({str(LEVEL)!r}), programs=True)\n"
        f"for place in child.stream({name('where')!r}, {{}}, 600):\n"
        "    print(json.dumps(place), flush=True)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    place = json.loads(parent.stdout.readline())
    assert alive(place["pid"])
    assert alive(place["parent"])
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert eventually(lambda: not alive(place["pid"]))
    assert eventually(lambda: not alive(place["parent"]))
    assert eventually(lambda: not Path(place["directory"]).exists())


def test_a_stream_that_is_abandoned_leaves_nothing(child: WarmChild) -> None:
    stream = child.stream(name("where"), {}, 600)
    place = next(stream)
    assert Path(place["directory"]).exists()
    assert isinstance(stream, Generator)
    stream.close()
    assert not alive(place["pid"])
    assert not Path(place["directory"]).exists()
    assert works(child)


def test_a_child_that_cannot_start_says_so() -> None:
    child = WarmChild(["workers.no_such_module"], level=LEVEL)
    with pytest.raises(ChildCrashed) as caught:
        child.start()
    assert "did not start" in caught.value.stderr
    child.close()


@pytest.fixture(scope="module")
def busy_child() -> Iterator[WarmChild]:
    child = WarmChild([FUNCTIONS], busy=True, level=LEVEL, programs=True)
    yield child
    child.close()


def stands_still(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


def test_a_busy_fork_stands_still_while_a_timing_is_taken(busy_child: WarmChild) -> None:
    assert works(busy_child)
    stream = busy_child.stream(name("where"), {}, 1.5)
    pid = next(stream)["pid"]
    assert not stands_still(pid)
    with host_lock.quiet():
        assert eventually(lambda: stands_still(pid))
        time.sleep(2.0)  # of its deadline nothing is spent
    assert eventually(lambda: not stands_still(pid))
    with pytest.raises(ChildTimeout):
        next(stream)
    assert works(busy_child)


def test_a_busy_fork_does_not_start_while_a_timing_is_taken(busy_child: WarmChild) -> None:
    assert works(busy_child)
    with ThreadPoolExecutor(1) as pool:
        with host_lock.quiet():
            call = pool.submit(busy_child.call, name("values"), {"items": ["fine"]}, 1.5)
            time.sleep(2.0)  # of its deadline nothing is spent
            assert not call.done()
        assert call.result(60) == "fine"


def test_a_busy_fork_may_be_stopped_between_its_error_and_its_end(busy_child: WarmChild) -> None:
    stream = busy_child.stream(name("fail_and_linger"), {}, 30)
    assert next(stream) == "soon"
    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(list, stream)
        time.sleep(0.2)
        with host_lock.quiet():
            time.sleep(0.1)
        with pytest.raises(ChildRaised):
            rest.result(60)
    assert [works(busy_child) for _ in range(3)] == [True] * 3


def test_a_fork_that_stands_still_goes_with_its_child(busy_child: WarmChild) -> None:
    stream = busy_child.stream(name("where"), {}, 600)
    place = next(stream)
    with host_lock.quiet():
        assert eventually(lambda: stands_still(place["pid"]))
        os.kill(place["parent"], signal.SIGKILL)
        assert eventually(lambda: not alive(place["pid"]))
    assert isinstance(stream, Generator)
    stream.close()
    assert works(busy_child)


def test_threads_take_turns(child: WarmChild) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda i: child.call(name("values"), {"items": [i], "pause": 0.01}, 30), range(24))
        assert list(answers) == list(range(24))


def opened() -> Counter[str]:
    """What this process's descriptors refer to, each pipe and socket by its own number."""
    links: Counter[str] = Counter()
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the listing itself is closed by now
            links[os.readlink(f"/proc/self/fd/{descriptor}")] += 1
    return links


def test_nothing_piles_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = opened()
    child = WarmChild([FUNCTIONS], level=LEVEL, programs=True)
    mixed: list[tuple[str, dict[str, Any]]] = [
        ("values", {"items": [1]}),
        ("segfault", {}),
        ("leave", {}),
        ("fail", {"message": ""}),
        ("values", {"items": list(range(50))}),
    ]
    for function, arguments in mixed * 10:
        try:
            list(child.stream(name(function), arguments, 30))
        except ChildError:
            continue
    for _ in range(2):
        next(child.stream(name("where"), {}, 30))  # abandoned at once
    assert works(child)
    assert child._process is not None
    own = psutil.Process(child._process.pid)
    family = [own, *own.children(recursive=True)]
    assert any(
        process.cmdline()[1:3] == ["-m", "workers.child.program"] and process.children() == [] for process in family
    )
    assert not any(process.status() == psutil.STATUS_ZOMBIE for process in family)
    assert list(tmp_path.iterdir()) == []
    child.close()
    assert not opened() - before  # what earlier tests left may close meanwhile
    assert eventually(lambda: not any(process.is_running() for process in family))


def test_what_is_done_meanwhile_can_end_a_call(child: WarmChild) -> None:
    class Enough(Exception):
        pass

    def enough() -> None:
        raise Enough

    child.start()  # another test may have left it ended
    process = child._process
    with pytest.raises(Enough):
        child.call(name("spin"), {}, 600, enough)
    assert works(child)
    assert child._process is process


def test_a_child_works_beside_a_thousand_connections() -> None:
    """Its pipes have numbers then that `select` does not take."""
    many = [os.dup(0) for _ in range(1100)]
    child = WarmChild([FUNCTIONS], level=LEVEL)
    try:
        assert works(child)
        assert child._replies > 1024
    finally:
        child.close()
        for each in many:
            os.close(each)


def test_a_call_can_be_stopped_from_another_thread(child: WarmChild) -> None:
    with ThreadPoolExecutor(1) as pool:
        spinning = pool.submit(child.call, name("spin"), {}, 600)
        until = time.monotonic() + 20
        while not spinning.done() and time.monotonic() < until:
            child.stop()
            time.sleep(0.1)
        with pytest.raises(ChildStopped):
            spinning.result()
    child.stop()  # of nothing: the next call is another
    assert works(child)


@pytest.mark.whole
def test_it_starts_beside_a_scikit_learn_that_needs_pytorch(tmp_path: Path) -> None:
    """XGBoost imports scikit-learn where it is installed, and the child hides PyTorch from itself."""
    package = tmp_path / "sklearn"
    package.mkdir()
    (package / "__init__.py").write_text("import sys\nsys.modules['torch'].Tensor\n")
    paths = [str(CHECKOUT / "client"), str(tmp_path)]
    child = WarmChild(["xgboost", FUNCTIONS], {"PYTHONPATH": os.pathsep.join(paths)}, level=Level.NONE)
    try:
        assert works(child)
    finally:
        child.close()

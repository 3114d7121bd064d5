"""The thread that launches parallel loops keeps off the cores of the runtime's workers."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from workers import threads


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


class _Bound:
    """A thread that may run on the given cores only."""

    def __init__(self, cores: set[int]) -> None:
        self._cores = cores
        self._there, self._enough = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        os.sched_setaffinity(0, self._cores)
        self._there.set()
        self._enough.wait()

    def __enter__(self) -> None:
        self._thread.start()
        self._there.wait()

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core only")
def test_a_bound_worker_has_its_core_for_itself() -> None:
    cores = os.sched_getaffinity(0)
    one = max(cores)
    with _Bound({one}):
        threads.settle()
    assert os.sched_getaffinity(0) == cores - {one}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core only")
def test_a_thread_that_is_free_takes_no_core() -> None:
    cores = os.sched_getaffinity(0)
    with _Bound(cores):
        threads.settle()
    assert os.sched_getaffinity(0) == cores


def test_where_no_core_is_left_all_stay() -> None:
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    with _Bound({core}):
        threads.settle()
    assert os.sched_getaffinity(0) == {core}

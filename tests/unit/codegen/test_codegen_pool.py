"""Parallel loops on the pool of Loopwright's own threads: in processes with other numbers of threads, and in forks."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm.script import ir as I
from tvm.script import tirx as T

from loopwright.codegen.host import pool
from loopwright.packaging import load


@I.ir_module
class Loops:
    @T.prim_func(s_tir=True)
    def main(a: T.Buffer((37, 5), "float32"), b: T.Buffer((37, 5), "float32")):  # type: ignore
        T.func_attr({"global_symbol": "main"})
        for i in T.parallel(37):
            for j in T.serial(5):
                with T.sblock("scale"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    b[vi, vj] = a[vi, vj] * T.float32(3) + T.Cast("float32", vi)

    @T.prim_func(s_tir=True)
    def fails(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):  # type: ignore
        T.func_attr({"global_symbol": "fails"})
        for i in T.parallel(8):
            with T.sblock("check"):
                vi = T.axis.spatial(8, i)
                assert a[vi] < T.float32(7), "too large"
                b[vi] = a[vi]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tvm.runtime.Module:
    path = str(tmp_path_factory.mktemp("pool") / "loops.so")
    tvm.compile(Loops, target="llvm").export_library(path)
    pool.install()
    return tvm.runtime.load_module(path)


@pytest.fixture(params=[1, 2, 5, 64])
def count(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def in_a_fork(threads: int, work: Callable[[], object]) -> str:
    """Return what a function returns in a forked process whose loops have so many threads."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.environ["TVM_NUM_THREADS"] = str(threads)
            text = repr(work())
        except BaseException as error:
            text = repr(error)
        finally:
            os.write(writing, text.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


def scale(program: tvm.runtime.Module) -> None:
    a = np.random.default_rng().random((37, 5), np.float32)
    inputs, result = tvm.runtime.tensor(a), tvm.runtime.tensor(np.zeros_like(a))
    program["main"](inputs, result)
    expected = a * np.float32(3) + np.arange(37, dtype=np.float32)[:, None]
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


def threads(expected: int) -> int:
    """Return how many threads run loops here, the launching one included: soon as many as expected, if all is well.

    They have a name, since libraries that other tests have loaded start threads in a forked child, too.
    """
    until = time.monotonic() + 20
    while (found := 1 + _workers()) != expected and time.monotonic() < until:
        time.sleep(0.01)
    return found


def _workers() -> int:
    names = []
    for path in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it has ended
            names.append(path.read_text())
    return names.count("loopwright\n")


def test_a_loop_runs_right_on_any_number_of_threads(program: tvm.runtime.Module, count: int) -> None:
    def work() -> int:
        for _ in range(200):
            scale(program)
        return threads(count)

    assert in_a_fork(count, work) == str(count)


def test_a_forked_child_starts_threads_of_its_own(program: tvm.runtime.Module) -> None:
    def again() -> tuple[int, int]:
        before = threads(1)
        scale(program)
        return before, threads(3)

    def work() -> str:
        scale(program)
        return in_a_fork(3, again)

    assert in_a_fork(2, work) == repr(repr((1, 3)))


def test_threads_that_launch_loops_at_once_get_their_own_results(program: tvm.runtime.Module) -> None:
    wrong: list[BaseException] = []

    def many() -> None:
        try:
            for _ in range(300):
                scale(program)
        except BaseException as error:
            wrong.append(error)

    def work() -> list[BaseException]:
        callers = [threading.Thread(target=many) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        return wrong

    assert in_a_fork(3, work) == "[]"


@pytest.mark.parametrize("place", [0, 7])
def test_an_error_in_a_task_is_raised_where_the_loop_was_launched(program: tvm.runtime.Module, place: int) -> None:
    values = np.zeros(8, np.float32)
    values[place] = 9

    def work() -> int:
        raised = 0
        for _ in range(50):
            try:
                program["fails"](tvm.runtime.tensor(values), tvm.runtime.tensor(np.zeros(8, np.float32)))
            except Exception as error:
                raised += "too large" in str(error)
        scale(program)
        return raised

    assert in_a_fork(2, work) == "50"


def test_with_more_threads_than_bits_of_a_word_the_pool_of_the_runtime_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", str(pool.MOST_THREADS))
    assert pool.is_available()
    monkeypatch.setenv("TVM_NUM_THREADS", str(pool.MOST_THREADS + 1))
    assert not pool.is_available()


def test_a_package_and_the_compiler_install_one_pool() -> None:
    assert pool.INSTALLED == load.THREADS


def test_the_pool_compiles_for_the_other_architecture(tmp_path: Path) -> None:
    path = tmp_path / "pool.o"
    pool.module("aarch64").write_to_file(str(path), "o")
    assert path.read_bytes()[18:20] == (183).to_bytes(2, "little")  # EM_AARCH64

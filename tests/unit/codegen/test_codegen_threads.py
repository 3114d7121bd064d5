"""The threads of TVM's runtime: as many as cores that may be used, unbound, and the user's own settings stay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright.codegen.host import threads

VARIABLES = (threads.NUM_THREADS, threads.OMP_NUM_THREADS, threads.BIND_THREADS)


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        # Set first, so that what a test sets is removed again.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def machine(
    root: Path, siblings: dict[int, str], *, groups: str = "0::/\n", quotas: dict[str, str] | None = None
) -> Path:
    """Write what Linux says of a machine: the hyper-threads beside each CPU, and quotas by control group."""
    for cpu, text in siblings.items():
        topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{text}\n")
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    for group, quota in (quotas or {}).items():
        folder = root / "sys/fs/cgroup" / group
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpu.max").write_text(f"{quota}\n")
    return root


PAIRS = {0: "0,4", 1: "1,5", 2: "2,6", 3: "3,7", 4: "0,4", 5: "1,5", 6: "2,6", 7: "3,7"}


@pytest.mark.parametrize(
    ("allowed", "siblings", "quotas", "cores"),
    [
        (range(8), PAIRS, {}, 4),
        ((0, 4), PAIRS, {}, 1),
        ((0, 1), PAIRS, {}, 2),
        (range(4), {0: "0-1", 1: "0-1", 2: "2", 3: "3"}, {}, 3),  # a processor with cores of two kinds
        (range(64), {}, {}, 64),  # no topology is shown
        (range(64), {}, {"": "max 100000"}, 64),
        (range(64), {}, {"": "250000 100000"}, 2),
        (range(64), {}, {"": "50000 100000"}, 1),
        (range(64), {}, {"box": "1600000 100000", "box/job": "max 100000"}, 16),
        (range(64), {}, {"box": "1600000 100000", "box/job": "400000 100000"}, 4),
    ],
)
def test_cores_that_may_be_used(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    allowed: range | tuple[int, ...],
    siblings: dict[int, str],
    quotas: dict[str, str],
    cores: int,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(allowed))
    groups = "1:name=systemd:/elsewhere\n0::/box/job\n"
    assert threads.usable_cores(machine(tmp_path, siblings, groups=groups, quotas=quotas)) == cores


def test_a_process_gets_a_thread_for_each_core_and_none_is_bound() -> None:
    assert threads.set_defaults() is None
    cores = threads.usable_cores()
    assert {name: os.environ[name] for name in threads.environment(cores)} == threads.environment(cores)
    assert threads.configured() == cores


@pytest.mark.parametrize(
    ("given", "configured"),
    [
        ({threads.NUM_THREADS: "3"}, 3),
        ({threads.OMP_NUM_THREADS: "5"}, 5),
        ({threads.OMP_NUM_THREADS: "4,2"}, 4),
        ({threads.NUM_THREADS: "3", threads.OMP_NUM_THREADS: "5"}, 3),
        ({threads.NUM_THREADS: "many"}, 1),
        ({threads.NUM_THREADS: "0"}, 1),
    ],
)
def test_the_users_number_of_threads_stays(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], configured: int
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert threads.set_defaults() is None
    numbers = {name: os.environ[name] for name in VARIABLES[:2] if name in os.environ}
    assert numbers == given
    assert threads.configured() == configured


def test_the_users_binding_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(threads.BIND_THREADS, "1")
    threads.set_defaults()
    assert os.environ[threads.BIND_THREADS] == "1"


@pytest.fixture
def bound() -> Iterator[None]:
    """Two threads, each of which may run on one processor only: a pool of three as the runtime starts it."""
    started, stop = threading.Barrier(3), threading.Event()

    def run() -> None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        started.wait()
        stop.wait()

    pool = [threading.Thread(target=run) for _ in range(2)]
    for thread in pool:
        thread.start()
    started.wait()
    yield
    stop.set()
    for thread in pool:
        thread.join()


@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize(("cores", "warns"), [(6, True), (3, False)])
def test_threads_that_were_started_before_with_another_number_are_said(
    monkeypatch: pytest.MonkeyPatch, cores: int, warns: bool
) -> None:
    monkeypatch.setitem(sys.modules, "tvm", object())
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(threads, "usable_cores", lambda: cores)
    warning = threads.set_defaults()
    assert (warning is not None) is warns
    assert warning is None or "started 3 threads before" in warning
    assert os.environ[threads.NUM_THREADS] == str(cores)
    assert threads.set_defaults() is None, "said once"


def test_without_bound_threads_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(threads, "usable_cores", lambda: 6)
    assert threads.set_defaults() is None


@pytest.mark.whole
def test_the_runtime_starts_these_threads_and_leaves_all_threads_free() -> None:
    code = """
import json, os, threading
import tvm
from loopwright.extras import require_tvm
before = os.sched_getaffinity(0)
require_tvm()
number = tvm.get_global_func("runtime.NumThreads")
numbers = [number()]
other = threading.Thread(target=lambda: numbers.append(number()))
other.start()
other.join()
tasks = [int(name) for name in os.listdir("/proc/self/task")]
free = all(os.sched_getaffinity(task) == before for task in tasks)
print(json.dumps([numbers, free]))
"""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    cores = threads.usable_cores()
    assert json.loads(done.stdout) == [[cores, cores], True]

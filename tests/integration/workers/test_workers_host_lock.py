"""The host's lock, between processes: that is what it is for."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loopwright.codegen.host import lock as host_lock
from tests.support.waiting import wait_for
from workers.child import lock_watch
from workers.child.lock_watch import LockWatch

CHECKOUT = Path(__file__).resolve().parents[3]
PROGRAM = """
import contextlib, sys, time
from pathlib import Path
from loopwright.codegen.host import lock as host_lock
kinds = {"quiet": host_lock.quiet, "busy": lambda: contextlib.closing(host_lock.SharedHold())}
host_lock.directory = lambda: Path(sys.argv[1])
kind, hold, times = sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
print("asks", flush=True)
for _ in range(times):
    with kinds[kind]():
        print("in", flush=True)
        time.sleep(hold)
print("out", flush=True)
"""
Holder = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Holder]:
    """Starts a process that holds a lock for so many seconds, so many times; it says asks, in, out."""
    started: list[subprocess.Popen[str]] = []

    def start(kind: str, hold: float = 600, times: int = 1) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), kind, str(hold), str(times)]
        process = subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert says(process) == "asks"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def says(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def silent(process: subprocess.Popen[str], seconds: float = 0.5) -> bool:
    """Whether it is still waiting after a while."""
    assert process.stdout is not None
    time.sleep(seconds)
    os.set_blocking(process.stdout.fileno(), False)
    heard = process.stdout.readline()
    os.set_blocking(process.stdout.fileno(), True)
    return heard == ""


def test_many_are_busy_together(holder: Holder) -> None:
    assert [says(process) for process in [holder("busy") for _ in range(4)]] == ["in"] * 4


def test_a_timing_is_alone(holder: Holder) -> None:
    first = holder("quiet")
    assert says(first) == "in"
    waiting = [holder("quiet"), holder("busy")]
    assert all(silent(process) for process in waiting)
    first.kill()
    for process in waiting:
        process.kill()
    assert says(holder("quiet")) == "in"


def test_a_timing_waits_for_the_busy(holder: Holder) -> None:
    busy = [holder("busy") for _ in range(2)]
    assert [says(process) for process in busy] == ["in", "in"]
    quiet = holder("quiet")
    assert silent(quiet)
    busy[0].kill()
    assert silent(quiet)
    busy[1].kill()
    assert says(quiet) == "in"


def test_a_stream_of_builds_does_not_starve_a_timing(holder: Holder) -> None:
    builds = [holder("busy", 0.05, 100_000) for _ in range(3)]
    assert [says(process) for process in builds] == ["in"] * 3
    quiet = holder("quiet", 0.01, 3)
    assert [says(quiet) for _ in range(4)] == ["in", "in", "in", "out"]


def test_who_pauses_waits_for_the_timing_that_waited(
    holder: Holder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_lock, "directory", lambda: tmp_path)
    with contextlib.closing(host_lock.SharedHold()) as held:
        held.pause()
        quiet = holder("quiet")
        assert silent(quiet)
        pausing = threading.Thread(target=held.pause)
        pausing.start()
        assert says(quiet) == "in"
        pausing.join(0.5)
        assert pausing.is_alive()
        quiet.kill()
        pausing.join(60)
        assert not pausing.is_alive()
        assert silent(holder("quiet")), "it is busy again"


@pytest.mark.parametrize("kind", ["quiet", "busy"])
def test_the_kernel_frees_what_a_killed_holder_held(holder: Holder, kind: str) -> None:
    first = holder(kind)
    assert says(first) == "in"
    second = holder("quiet")
    assert silent(second)
    first.send_signal(signal.SIGKILL)
    assert says(second) == "in"


def test_a_timing_that_dies_waiting_frees_the_turnstile(holder: Holder) -> None:
    assert says(holder("busy")) == "in"
    waiting = holder("quiet")
    assert silent(waiting)
    waiting.kill()
    assert says(holder("busy")) == "in"


@pytest.mark.parametrize("kind", ["busy", "quiet"])
def test_who_is_stopped_with_the_lock_is_killed_if_it_is_ours(
    holder: Holder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    monkeypatch.setattr(host_lock, "directory", lambda: tmp_path)
    stopped = holder(kind)
    assert says(stopped) == "in"
    stopped.send_signal(signal.SIGSTOP)
    theirs = LockWatch(seconds=0.2)
    ours = LockWatch(stopped_seconds=0.2, may_kill=lambda process: process.pid == stopped.pid)
    waiting = holder("quiet")
    assert silent(waiting)

    def named() -> bool:
        theirs.look()
        return "stopped" in caplog.text

    wait_for("who has the lock to be named", named)
    assert f"process {stopped.pid} (" in caplog.text
    assert stopped.poll() is None

    def killed() -> bool:
        ours.look()
        return stopped.poll() == -signal.SIGKILL

    wait_for("it to be killed", killed)
    assert says(waiting) == "in"


def test_who_is_stopped_in_the_queue_is_killed_before_its_turn(
    holder: Holder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(host_lock, "directory", lambda: tmp_path)
    working = holder("busy")
    assert says(working) == "in"
    waiting = holder("quiet")
    assert silent(waiting)
    waiting.send_signal(signal.SIGSTOP)
    watch = LockWatch(stopped_seconds=0.2, may_kill=lambda _: True)

    def killed() -> bool:
        watch.look()
        return waiting.poll() == -signal.SIGKILL

    wait_for("who waits to be killed", killed)
    assert working.poll() is None
    # It had the turnstile, which is free again.
    assert says(holder("busy")) == "in"


def test_who_works_with_the_lock_is_named_once_and_left_alone(
    holder: Holder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(host_lock, "directory", lambda: tmp_path)
    working = holder("busy")
    assert says(working) == "in"
    waiting = [holder("quiet"), holder("busy")]
    assert all(silent(process, 0.2) for process in waiting)
    monkeypatch.setattr(lock_watch, "OTHER_SECONDS", 0.0)
    watch = LockWatch(seconds=0.0, may_kill=lambda _: True)
    for _ in range(3):
        watch.look()
        time.sleep(0.05)
    assert watch.other is None, "this process started all of them"
    monkeypatch.setattr(lock_watch, "_is_mine", lambda process: process.pid != working.pid)
    watch.look()
    assert watch.other is not None
    assert f"(process {working.pid})" in watch.other
    assert caplog.text.count(f"process {working.pid} (") == 1
    # The timing that waits has the turnstile, for which the build waits.
    assert caplog.text.count(f"process {waiting[0].pid} (") == 1
    assert all(process.poll() is None for process in (working, *waiting))

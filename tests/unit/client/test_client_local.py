"""The service of this machine in the background: started once, found, stopped, and not taken for alive when killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from loopwright.cli import service as commands
from loopwright.errors import LocalServiceFailed
from loopwright.local import daemon, parts
from loopwright.local.state import LOCK, LocalState, last, running
from tests.support.waiting import wait_for
from tests.unit.client.conftest import Command, Done

PLAYED = """
import argparse, fcntl, json, os, pathlib, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", type=pathlib.Path)
parser.add_argument("--port", type=int)
options = parser.parse_args()
print("loopwright: the database is opened ...", flush=True)
if os.environ.get("PLAYED") == "fails":
    sys.exit("loopwright: the disk is full")
with (options.data_dir / "lock").open("a+") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    for is_ready in (False, True):
        lock.truncate(0)
        lock.write(json.dumps({"pid": os.getpid(), "url": f"http://127.0.0.1:{options.port}", "is_ready": is_ready}))
        lock.flush()
        time.sleep(0.3)
    time.sleep(600)
"""
"""The part of a service that its client sees."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The data folder of a service that is played."""
    program = tmp_path / "played.py"
    program.write_text(PLAYED)
    monkeypatch.setattr(parts, "command", lambda part: [sys.executable, str(program)])
    folder = tmp_path / "data"
    yield folder
    state = running(folder)
    if state is not None:
        with suppress(ProcessLookupError):
            os.kill(state.pid, signal.SIGKILL)


def test_one_service_is_started_found_and_stopped(folder: Path) -> None:
    said: list[str] = []
    assert running(folder) is None
    assert not daemon.stop(folder)
    state = daemon.ensure(folder, said.append)
    assert said == ["the database is opened ..."]
    assert state == running(folder) == daemon.ensure(folder, said.append)
    assert folder.stat().st_mode & 0o77 == 0
    assert (folder / daemon.LOG).stat().st_mode & 0o77 == 0
    assert os.getsid(state.pid) == state.pid
    assert daemon.stop(folder)
    assert running(folder) is None


def test_a_service_that_was_killed_does_not_seem_to_run_and_its_port_is_taken_again(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    state = daemon.ensure(folder, lambda _: None, port)
    assert state.url == f"http://127.0.0.1:{port}"
    os.kill(state.pid, signal.SIGKILL)
    wait_for("its end", lambda: running(folder) is None, 30)
    assert last(folder) == state
    again = daemon.ensure(folder, lambda _: None)
    assert (again.url, again.pid != state.pid) == (state.url, True)
    daemon.stop(folder)
    with socket.create_server(("127.0.0.1", port)):
        assert daemon.ensure(folder, lambda _: None).url != state.url


def test_a_start_that_fails_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYED", "fails")
    with pytest.raises(LocalServiceFailed, match=r"did not start: the disk is full \(log: .*service\.log\)"):
        daemon.ensure(folder, lambda _: None)


def test_a_client_alone_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "command", lambda part: None)
    with pytest.raises(LocalServiceFailed, match=r"pip install 'loopwright\[local\]'"):
        daemon.ensure(tmp_path / "data", lambda _: None)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"other": 1}'])
def test_a_file_that_is_being_written_names_no_service(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK).write_text(text)
    assert running(tmp_path) is None
    assert last(tmp_path) is None


def test_the_commands_say_what_they_did(folder: Path, run: Command) -> None:
    where = ("--data-dir", str(folder))
    assert run("service", "status", *where).status == 3
    assert json.loads(run("service", "start", *where, "--json").out)["state"] == "running"
    started = run("service", "start", *where)
    state = running(folder)
    assert state is not None
    assert started.out.startswith(f"the service runs at {state.url} (data and logs: {folder})")
    shown = run("service", "status", *where, "--json")
    assert (shown.status, json.loads(shown.out)) == (
        0,
        {"state": "running", "url": state.url, "pid": state.pid, "data_dir": str(folder)},
    )
    assert run("service", "stop", *where) == Done(0, "the service has stopped\n", "")
    assert run("service", "stop", *where).out == f"no service runs on {folder}\n"


def test_a_start_that_is_interrupted_goes_on(folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> LocalState:
        raise KeyboardInterrupt

    monkeypatch.setattr(daemon, "ensure", interrupted)
    monkeypatch.setattr(commands, "running", lambda _: LocalState(1, "http://127.0.0.1:1"))
    done = run("service", "start", "--data-dir", str(folder))
    assert (done.status, done.err) == (130, "the service goes on starting; 'loopwright service stop' stops it\n")

"""The queue of writers: one at a time, whatever becomes of the processes in it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from db.engine import writer_queue
from db.engine.changes import Topic
from db.engine.connections import Sessions, create_engine
from db.engine.writer_queue import turn
from tests.support.waiting import wait_for

SECONDS = 120.0
"""After which a process of a test has hung."""

FOR_EVER = "from db.engine import writer_queue; writer_queue.TURN_SECONDS = 1e6\n"
"""A turn is had, or the test hangs: nobody goes on without."""

ALONE = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("writer_queue", {writer_queue.__file__!r})
sys.modules["writer_queue"] = writer_queue = importlib.util.module_from_spec(spec)
spec.loader.exec_module(writer_queue)
writer_queue.TURN_SECONDS = 1e6
"""
"""The same, without the rest of the package, whose import takes seconds."""

HOLDER = """
import sys, time
from writer_queue import turn
with turn(sys.argv[1]):
    print("has the turn", flush=True)
    sys.stdin.read()
"""

WRITER = """
import sys
from sqlalchemy import text
from db.engine.connections import Sessions, create_engine
with Sessions(create_engine(sys.argv[1])).write() as session:
    session.execute(text("INSERT INTO t VALUES (1)"))
    print("has the turn", flush=True)
    sys.stdin.read()
"""

COUNTERS = """
import sys, threading
from pathlib import Path
from writer_queue import turn
def count():
    for _ in range(50):
        with turn(sys.argv[1]):
            counter = Path(sys.argv[1])
            counter.write_text(str(int(counter.read_text()) + 1))
threads = [threading.Thread(target=count) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

FORKING = """
import os, sys
from writer_queue import turn
with turn(sys.argv[1]):
    child = os.fork()
    if child:
        print("has the turn", flush=True)
        sys.stdin.read(1)
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
with turn(sys.argv[1]):
    os._exit(7)
"""

FORKED = """
import os, signal, sys
from writer_queue import turn
with turn(sys.argv[1]):
    if os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
    print("has the turn", flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def _for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_queue, "TURN_SECONDS", 1e6)


def started(script: str, argument: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", (FOR_EVER if script is WRITER else ALONE) + script, str(argument)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def with_the_turn(script: str, argument: object) -> subprocess.Popen[str]:
    process = started(script, argument)
    assert process.stdout is not None
    assert process.stdout.readline() == "has the turn\n"
    return process


def test_one_writes_at_a_time_of_all_processes_and_threads(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    processes = [started(COUNTERS, counter) for _ in range(3)]
    assert [process.wait(SECONDS) for process in processes] == [0, 0, 0]
    assert counter.read_text() == str(3 * 4 * 50)


def test_a_writer_that_is_killed_in_its_transaction_gives_its_turn_to_the_next(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    engine = create_engine(url)
    sessions = Sessions(engine)
    with sessions.write(Topic.NONE) as session:
        session.execute(text("CREATE TABLE t (x INTEGER)"))
    writer = with_the_turn(WRITER, url)
    writer.kill()
    with sessions.write(Topic.NONE) as session:
        session.execute(text("INSERT INTO t VALUES (2)"))
        assert session.execute(text("SELECT x FROM t")).scalars().all() == [2]
    writer.communicate()
    engine.dispose()


def test_a_process_that_forks_in_its_turn_keeps_it_and_its_child_waits(tmp_path: Path) -> None:
    process = with_the_turn(FORKING, tmp_path / "a.db")
    process.communicate("go on", timeout=SECONDS)
    assert process.returncode == 7


def test_the_fork_of_a_writer_that_was_killed_has_no_turn(tmp_path: Path) -> None:
    process = with_the_turn(FORKED, tmp_path / "a.db")
    process.kill()
    process.wait()
    with turn(str(tmp_path / "a.db")):
        pass  # the fork is still there: it reads from the pipe that is closed next
    process.communicate()


def test_without_a_turn_in_time_writers_go_on_until_there_are_turns_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = str(tmp_path / "a.db")
    holder = with_the_turn(HOLDER, database)
    holder.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(writer_queue, "TURN_SECONDS", 0.01)
    with turn(database):
        pass
    # The next ones do not wait for what has not moved.
    monkeypatch.setattr(writer_queue, "TURN_SECONDS", 1e6)
    for _ in range(3):
        with turn(database):
            pass
    holder.kill()
    holder.communicate()
    late = writer_queue._queue_of(f"{database}-queue")._late
    assert late is not None
    wait_for("the end of the wait", late.over.is_set)
    other = with_the_turn(HOLDER, database)
    other.communicate(timeout=SECONDS)
    assert other.returncode == 0


def test_where_the_file_cannot_be_made_there_is_no_queue(tmp_path: Path) -> None:
    (tmp_path / "a.db-queue").mkdir()
    with turn(str(tmp_path / "a.db")), turn(str(tmp_path / "missing" / "b.db")):
        assert not (tmp_path / "missing").exists()

"""A start of Ray lasts as long as its processes get on, and one that fails leaves nothing."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ray._private import services

from tests.support.service import ROOT
from tests.support.waiting import wait_for
from workers.progress import Progress
from workers.ray import private

BUSY = "while True: pass"
IDLE = "import time; print(flush=True); time.sleep(600)"


@contextlib.contextmanager
def running(program: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_processes_that_use_the_processor_get_on() -> None:
    with running(BUSY):
        progress = Progress(0.0, 600.0, window=3.0)
        until = time.monotonic() + 4.0
        while time.monotonic() < until:
            assert progress.goes_on()
            time.sleep(0.2)


def test_processes_that_wait_do_not_get_on() -> None:
    with running(IDLE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        progress = Progress(0.5, 600.0, window=0.2)
        assert progress.goes_on(), "in its first moments a start may wait"
        wait_for("the end of patience", lambda: not progress.goes_on(), 30)


def test_no_start_lasts_for_ever() -> None:
    with running(BUSY):
        progress = Progress(0.0, 0.5, window=60.0)
        wait_for("the end of patience", lambda: not progress.goes_on(), 30)


def test_a_raylet_that_is_late_is_waited_for_while_its_processes_get_on(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []

    def late(address: str, node: str) -> dict[str, str]:
        looks.append((address, node))
        if len(looks) < 4:
            raise RuntimeError("the node is not there")
        return {"node": node}

    monkeypatch.setattr(services, "get_node", late)
    monkeypatch.setattr(private, "_LOOK_SECONDS", 0.01)
    with private.patient(lambda: True):
        assert services.get_node("a", "b") == {"node": "b"}
    assert looks == [("a", "b")] * 4
    looks.clear()
    with private.patient(lambda: False), pytest.raises(RuntimeError, match="not there"):
        services.get_node("a", "b")
    assert services.get_node is late


FAILED_START = """
import subprocess, sys
from pathlib import Path
import psutil, ray
from workers.ray import cluster
from workers.walls.levels import Policy

def init(**_):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    raise Exception("The current node\\ntimed out.")

ray.init = init
try:
    cluster.connect(None, Path(sys.argv[1]), Policy.PREFER)
except ConnectionError as error:
    print(f"{error}; {len(psutil.Process().children())} left")
"""


def test_a_start_that_fails_leaves_no_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILED_START, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "Ray did not start (The current node timed out.); 0 left\n", done.stderr

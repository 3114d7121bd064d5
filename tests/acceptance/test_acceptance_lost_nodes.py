"""A machine of two that is lost in the middle of a job costs what it was measuring, and nothing else."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.ledger import check_ledger
from tests.support.programs import product
from tests.support.ray_nodes import RayNodes, below, join, joined_by_command, ray_head
from tests.support.service import START_SECONDS, Service
from tests.support.waiting import wait_for

TRIALS = 150


@pytest.fixture
def nodes() -> Iterator[RayNodes]:
    with ray_head() as nodes:
        yield nodes


@contextlib.contextmanager
def joined(nodes: RayNodes, folder: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A machine of this name, as long as the context lasts."""
    host, said = joined_by_command(nodes, folder, name=name)
    try:
        wait_for(f"the host, see {said}", lambda: "joined" in said.read_text() or None, START_SECONDS)
        yield host
    finally:
        send(host, signal.SIGKILL)
        host.wait()


def send(host: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to all processes of a machine, as if it lost its power, or froze."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in [psutil.Process(host.pid), *below(host)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("round", range(3))
def test_a_job_goes_on_without_the_machine(nodes: RayNodes, tmp_path: Path, number: signal.Signals, round: int) -> None:
    join(nodes, "--num-cpus=0")
    with joined(nodes, tmp_path, "left"), joined(nodes, tmp_path, "right") as lost:
        service = Service(tmp_path)
        service.environment |= nodes.environment | {"LOOPWRIGHT_RAY_ADDRESS": nodes.address}
        with service:
            wait_for("two workers", lambda: len(service.items("/workers")) == 2, START_SECONDS)
            job_id = service.submit(product(128, 96 + 16 * round), trials=TRIALS, force=True)
            service.in_the_middle(job_id, trials=8)
            send(lost, number)
            job = service.finished(job_id)
            assert job["state"] == "succeeded", job
            check_ledger(service, job)
            with sqlite3.connect(f"file:{service.data_dir / 'loopwright.db'}?mode=ro", uri=True) as database:
                assert database.execute("SELECT attempts FROM jobs WHERE id = ?", [job_id]).fetchone() == (1,)
            if number is signal.SIGSTOP:
                send(lost, signal.SIGCONT)

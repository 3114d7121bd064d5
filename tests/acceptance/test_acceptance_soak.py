"""Two hundred jobs from eight clients leave nothing behind: no memory, no file, no socket, no process."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.support.ledger import check_ledger
from tests.support.processes import is_warm_child
from tests.support.programs import product
from tests.support.service import Service
from tests.support.waiting import wait_for

CLIENTS, FIRST, JOBS, TRIALS = 8, 50, 200, 4
GROWTH = 1.1
"""Of memory, from the fiftieth job to the last."""
SPARE = (JOBS - FIRST) // 10
"""Descriptors more or fewer, which pools of connections have. One left by each job, or by every fifth, is found."""


@dataclass(frozen=True)
class Taken:
    """What the service has at rest; ``pss`` in bytes, of its own processes, and the number of warm children."""

    pss: int
    children: int
    processes: int
    descriptors: int
    sockets: int


def taken(service: Service) -> Taken:
    def at_rest() -> list[psutil.Process] | None:
        """All processes, once none works for a job: the forks of warm children have gone."""
        processes = service.note_processes()
        forks = [each for child in processes if is_warm_child(child) for each in child.children()]
        return None if forks else processes

    processes = wait_for("the service to be at rest", at_rest)
    own = [process for process in processes if not is_warm_child(process)]
    return Taken(
        pss=sum(process.memory_full_info().pss for process in processes),
        children=sum(map(is_warm_child, processes)),
        processes=len(own),
        descriptors=sum(process.num_fds() for process in own),
        sockets=sum(len(process.net_connections("all")) for process in own),
    )


def scratch() -> set[Path]:
    """Folders of warm children, and what else the service would leave in the temporary folder."""
    return {path for pattern in ("loopwright-*", "pymp-*") for path in Path("/tmp").glob(pattern)}


@pytest.mark.whole
def test_many_jobs_leave_nothing_behind(tmp_path: Path) -> None:
    numbers: Iterator[int] = itertools.count()
    submitting = threading.Semaphore(2)  # the service refuses more requests of one user at a time that read modules
    before = scratch()
    with Service(tmp_path) as service:

        def one(number: int) -> None:
            with submitting:
                job_id = service.submit(
                    product(64 + 4 * (number % 25), 64 + 8 * (number // 25)), trials=TRIALS, force=True
                )
            job = service.finished(job_id)
            assert job["state"] == "succeeded", job
            check_ledger(service, job)

        def many(count: int) -> None:
            with ThreadPoolExecutor(CLIENTS) as pool:
                list(pool.map(one, itertools.islice(numbers, count)))

        many(FIRST)
        first = taken(service)
        many(JOBS - FIRST)
        last = taken(service)
        assert len(service.items("/jobs")) == JOBS
        assert service.stop() == 0
    assert last.pss < GROWTH * first.pss, (first, last)
    assert last.children <= first.children, (first, last)
    assert last.processes <= first.processes, (first, last)
    assert last.descriptors <= first.descriptors + SPARE, (first, last)
    assert last.sockets <= first.sockets + SPARE, (first, last)
    assert scratch() <= before

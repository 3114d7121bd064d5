"""The tuning loops of the jobs that a controller has claimed: threads, which wait for children and workers mostly."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from db import Database
from db.views import ClaimedJob
from service.job_runner import JobRunner, RunEnd
from workers.search_children import SearchChildren
from workers.sharing import Sharing

log = logging.getLogger("loopwright.controller")


@dataclass(slots=True, eq=False)
class Loop:
    """One job at work. ``workers`` are the ids of the offers that it is measured on."""

    claimed: ClaimedJob
    workers: frozenset[str]
    since: float = field(default_factory=time.monotonic)
    leaving: bool = False
    """Whether its job was put back; it ends when it looks next."""
    thread: threading.Thread | None = None
    outcome: RunEnd | Exception | None = None
    """None while it runs."""


class Loops:
    """Up to ``places`` loops. Their searches run in children of this process, behind walls."""

    def __init__(self, database: Database, searches: SearchChildren, places: int) -> None:
        self._db = database
        self._searches = searches
        self._places = places
        self._sharing = Sharing()
        self._loops: list[Loop] = []

    @property
    def running(self) -> tuple[Loop, ...]:
        """Those that were started and not yet taken from `ended`."""
        return tuple(self._loops)

    @property
    def are_full(self) -> bool:
        return len(self._loops) >= self._places

    def start(self, claimed: ClaimedJob, builders: Mapping[str, int], measurers: dict[str, str]) -> None:
        """Begin a job on these actors; ``measurers`` maps their names to the workers' ids."""
        loop = Loop(claimed, frozenset(measurers.values()))
        # A daemon: when the controller ends, whoever claims the job next goes on from what is stored.
        loop.thread = threading.Thread(
            target=self._run, args=(loop, builders, measurers), name=f"job {claimed.job.id}", daemon=True
        )
        self._loops.append(loop)
        loop.thread.start()

    def ended(self) -> list[Loop]:
        """Return the loops that have ended since the last call."""
        ended = [loop for loop in self._loops if loop.outcome is not None]
        self._loops = [loop for loop in self._loops if loop.outcome is None]
        return ended

    def join(self, seconds: float) -> None:
        """Wait up to so long for all loops to end."""
        until = time.monotonic() + seconds
        for loop in self._loops:
            if loop.thread is not None:
                loop.thread.join(max(0.0, until - time.monotonic()))

    def _run(self, loop: Loop, builders: Mapping[str, int], measurers: dict[str, str]) -> None:
        try:
            loop.outcome = JobRunner(self._db, self._searches, self._sharing).run(loop.claimed, builders, measurers)
        except Exception as error:
            job_id = loop.claimed.job.id
            log.warning("the loop of job %s failed", job_id, exc_info=error, extra={"job": job_id})
            loop.outcome = error

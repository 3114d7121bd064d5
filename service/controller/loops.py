"""The tuning loops of a controller's jobs: threads, which mostly wait for children and workers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from db.views import ClaimedJob
from service.controller.job_runner import JobRunner, RunEnd
from workers.ray.crew import Crew

log = logging.getLogger("loopwright.controller")


@dataclass(slots=True, eq=False)
class Loop:
    """The loop of a running job, with all actors that it could use so far; ``workers`` are the ids of their offers."""

    claimed: ClaimedJob
    crew: Crew
    since: float
    """When it began, on `time.monotonic`."""
    leaving: bool = False
    """Whether its job was put back; it ends when it looks next."""
    thread: threading.Thread | None = None
    outcome: RunEnd | Exception | None = None
    """None while it runs."""

    @property
    def workers(self) -> frozenset[str]:
        return frozenset(self.crew.measurers.values())


class Loops:
    """Up to ``places`` loops. ``runner`` returns what runs one job."""

    def __init__(self, runner: Callable[[], JobRunner], places: int) -> None:
        self._runner = runner
        self._places = places
        self._loops: list[Loop] = []

    @property
    def running(self) -> tuple[Loop, ...]:
        """The loops that were started and that `ended` has not returned yet."""
        return tuple(self._loops)

    @property
    def are_full(self) -> bool:
        return len(self._loops) >= self._places

    def start(self, claimed: ClaimedJob, crew: Crew, serving: Callable[[], Crew]) -> None:
        """Start a job with a crew. ``serving`` returns the workers that could work on it now, and is thread-safe."""
        loop = Loop(claimed, crew, time.monotonic())
        # A daemon: when the controller ends, whoever claims the job next goes on from what is stored.
        loop.thread = threading.Thread(
            target=self._run, args=(loop, serving), name=f"job {claimed.job.id}", daemon=True
        )
        self._loops.append(loop)
        loop.thread.start()

    def ended(self) -> list[Loop]:
        """Return the loops that have ended since the last call."""
        ended = [loop for loop in self._loops if loop.outcome is not None]
        self._loops = [loop for loop in self._loops if loop.outcome is None]
        return ended

    def join(self, seconds: float) -> None:
        """Wait for all loops to end, for a limited time."""
        until = time.monotonic() + seconds
        for loop in self._loops:
            if loop.thread is not None:
                loop.thread.join(max(0.0, until - time.monotonic()))

    def _run(self, loop: Loop, serving: Callable[[], Crew]) -> None:
        def crew() -> Crew:
            loop.crew |= serving()
            return loop.crew

        try:
            loop.outcome = self._runner().run(loop.claimed, crew)
        except Exception as error:
            job_id = loop.claimed.job.id
            log.warning("the loop of job %s failed", job_id, exc_info=error, extra={"job": job_id})
            loop.outcome = error

"""What happens to a job, read from the database once for all streams that follow it.

Everything here belongs to the event loop; only the database is asked in threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeVar

import anyio
import anyio.to_thread

from db import Database
from db.states import FINISHED
from db.views import EventView
from loopwright import schemas

POLL_SECONDS = 0.25
"""Between two looks at a job. Not tuned."""
THREADS = 8
"""That ask the database for all feeds of a process, besides the 40 that answer requests. Not tuned."""
BATCH = 500
"""Events that are read at once. Not tuned."""
KEPT = 200
"""Of a job's events, the latest that a feed keeps in memory, of some kB each. Not tuned."""

About = TypeVar("About")
Answer = TypeVar("Answer")
log = logging.getLogger("loopwright.feeds")


class FeedBroken(Exception):
    """The feed cannot read the database; its log says why. Who reconnects has a new feed."""


@dataclass(frozen=True, slots=True)
class Line:
    """An event as streams send it: ``data`` is JSON."""

    id: int
    event: str
    data: str


class Feeds:
    """The feeds of this process: one for each job that somebody follows. ``on_wire`` makes of an event what is sent."""

    def __init__(self, database: Database, on_wire: Callable[[EventView], schemas.Event]) -> None:
        self._database = database
        self._on_wire = on_wire
        self._limiter = anyio.CapacityLimiter(THREADS)
        self._feeds: dict[str, Feed] = {}

    @contextlib.asynccontextmanager
    async def follow(self, job_id: str) -> AsyncIterator[Feed]:
        """Share the job's feed. It begins with its first follower and ends with its last."""
        feed = self._feeds.get(job_id)
        if feed is None or feed.broken:
            feed = self._feeds[job_id] = Feed(self._database, self._on_wire, self._limiter, job_id)
        feed.followers += 1
        try:
            yield feed
        finally:
            feed.followers -= 1
            if feed.followers == 0:
                feed.close()
                if self._feeds.get(job_id) is feed:
                    del self._feeds[job_id]


class Feed:
    """A job's latest events, and a task that looks for new ones.

    A follower takes lines at its own pace. One that lags behind what is kept reads from the database again, so that no
    reader makes the feed grow.
    """

    def __init__(
        self,
        database: Database,
        on_wire: Callable[[EventView], schemas.Event],
        limiter: anyio.CapacityLimiter,
        job_id: str,
    ) -> None:
        self._database = database
        self._on_wire = on_wire
        self._limiter = limiter
        self._job_id = job_id
        self._kept: deque[Line] = deque()
        self._start: int | None = None
        """Of the job's events, all that come after this one are kept. None: not known yet."""
        self._finished = False
        self._changed = asyncio.Event()
        self.followers = 0
        self.broken = False
        self._poller = asyncio.create_task(self._poll())

    def close(self) -> None:
        self._poller.cancel()

    async def after(self, last_id: int) -> Sequence[Line]:
        """Return the job's next lines after ``last_id``, once there are some; none if the job has ended.

        Raises FeedBroken.
        """
        while True:
            if self.broken:
                raise FeedBroken
            changed = self._changed
            if self._start is not None:
                if last_id < self._start:
                    return await self._ask(self._read, last_id)
                lines = list(takewhile(lambda line: line.id > last_id, reversed(self._kept)))
                if lines or self._finished:
                    return lines[::-1]
            await changed.wait()

    async def _poll(self) -> None:
        try:
            self._start = latest = await self._ask(self._database.events.latest, self._job_id)
            while not self._finished:
                finished, lines = await self._ask(self._look, latest)
                latest = lines[-1].id if lines else latest
                self._kept.extend(lines)
                while len(self._kept) > KEPT:
                    self._start = self._kept.popleft().id
                # A whole batch: there may be more.
                self._finished = finished and len(lines) < BATCH
                self._wake()
                if len(lines) < BATCH:
                    await asyncio.sleep(POLL_SECONDS)
        except Exception:
            log.exception("the feed of job %s ends", self._job_id)
            self.broken = True
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _look(self, last_id: int) -> tuple[bool, list[Line]]:
        # The state is read first: events that were written before the end are then sure to be seen.
        finished = self._database.jobs.get(self._job_id).state in FINISHED
        return finished, self._read(last_id)

    def _read(self, last_id: int) -> list[Line]:
        events = self._database.events.after(self._job_id, last_id, BATCH)
        return [Line(event.id, event.type.value, self._on_wire(event).model_dump_json()) for event in events]

    async def _ask(self, question: Callable[[About], Answer], about: About) -> Answer:
        return await anyio.to_thread.run_sync(question, about, limiter=self._limiter)

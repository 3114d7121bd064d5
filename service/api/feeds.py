"""The events of a job, read from the database once for all streams that follow the job.

Everything here runs on the event loop; only the database is read in threads. During an outage of the database, streams
stay open without events.
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
from sse_starlette import ServerSentEvent

from db import Database
from db.errors import Unavailable
from db.views import EventView, JobChanged
from loopwright import schemas
from loopwright.codegen.kinds import FINISHED
from service.outage import PATIENCE_SECONDS

POLL_SECONDS = 0.25
"""Between two looks at which jobs have news. Not tuned."""
THREADS = 8
"""That ask the database for all feeds of a process, besides the 40 that answer requests. Not tuned."""
BATCH = 500
"""Events that are read at once. Not tuned."""
RETRY_SECONDS = 1.0
"""Between two questions while the database is away. Not tuned."""
PAGES = 4
"""Of earlier events, of `BATCH` each, that a feed keeps for followers that begin at the same place. Not tuned."""
KEPT = 200
"""Of a job's events, the latest that a feed keeps in memory, of some kB each. Not tuned."""

About = TypeVar("About")
Answer = TypeVar("Answer")
log = logging.getLogger("loopwright.feeds")


class FeedBroken(Exception):
    """The feed cannot read the database; the log contains the reason. A reader that reconnects gets a new feed."""


@dataclass(frozen=True, slots=True)
class Line:
    """An event, and the bytes that all its streams send: they are made once."""

    id: int
    sent: bytes
    is_of_job: bool
    """Whether it says that the state of the job has changed."""


class Feeds:
    """The feeds of this process, one for each followed job. ``on_wire`` converts an event to its form on the wire."""

    def __init__(self, database: Database, on_wire: Callable[[EventView], schemas.Event]) -> None:
        self._database = database
        self._on_wire = on_wire
        self._limiter = anyio.CapacityLimiter(THREADS)
        self._feeds: dict[str, Feed] = {}
        self._watcher: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def follow(self, job_id: str) -> AsyncIterator[Feed]:
        """Share the job's feed, which exists as long as it has followers."""
        feed = self._feeds.get(job_id)
        if feed is None or feed.broken:
            feed = self._feeds[job_id] = Feed(self._database, self._on_wire, self._limiter, job_id)
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._watch())
        feed.followers += 1
        try:
            yield feed
        finally:
            feed.followers -= 1
            if feed.followers == 0:
                feed.close()
                if self._feeds.get(job_id) is feed:
                    del self._feeds[job_id]
            if not self._feeds and self._watcher is not None:
                self._watcher.cancel()
                self._watcher = None

    async def _watch(self) -> None:
        """Tell each feed of its job's latest event: one question for all of them."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                latest = await _answer(self._limiter, self._database.events.latest, list(self._feeds))
            except Exception:
                log.exception("all feeds end")
                for feed in self._feeds.values():
                    feed.end_broken()
                continue
            for job_id, feed in self._feeds.items():
                feed.heard_of(latest.get(job_id, 0))


class Feed:
    """A job's latest events, and a task that reads new events when it is notified of them.

    A follower takes lines at its own pace. A follower that lags behind the kept events, or begins before them, reads
    pages of earlier events, so no reader makes the feed grow. Followers at the same place share their pages: after a
    start of the API, hundreds of streams begin at once.
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
        self._latest = 0
        """Of the events that the feed has heard of."""
        self._news = asyncio.Event()
        self._pages: dict[int, asyncio.Task[list[Line]]] = {}
        """By the event that they begin after."""
        self.followers = 0
        self.broken = False
        self._reader = asyncio.create_task(self._read_on())

    def close(self) -> None:
        self._reader.cancel()

    def heard_of(self, event_id: int) -> None:
        """Notify the feed of an event with this id. The end of a job is an event, too."""
        if event_id > self._latest:
            self._latest = event_id
            self._news.set()

    def end_broken(self) -> None:
        """Break all streams that follow the job, because the database cannot be read."""
        self.close()
        self._break()

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
                    return await self._page(last_id)
                lines = list(takewhile(lambda line: line.id > last_id, reversed(self._kept)))
                if lines or self._finished:
                    return lines[::-1]
            await changed.wait()

    async def _page(self, last_id: int) -> Sequence[Line]:
        page = self._pages.get(last_id)
        if page is None:
            page = self._pages[last_id] = asyncio.create_task(self._ask(self._read, last_id))
            page.add_done_callback(lambda read: self._keep(last_id, read))
        # A follower that leaves takes nothing from the others.
        return await asyncio.shield(page)

    def _keep(self, last_id: int, page: asyncio.Task[list[Line]]) -> None:
        """Keep a page that was read if it is whole: nothing can come into it."""
        if page.cancelled() or page.exception() is not None or len(page.result()) < BATCH:
            self._pages.pop(last_id, None)
        while sum(each.done() for each in self._pages.values()) > PAGES:
            del self._pages[next(start for start, each in self._pages.items() if each.done())]

    async def _read_on(self) -> None:
        try:
            found = await self._ask(self._database.events.latest, [self._job_id])
            self._start = latest = found.get(self._job_id, 0)
            while not self._finished:
                finished, lines = await self._ask(self._look, latest)
                # What the feed has heard of, but is not there, would have it look again and again.
                if lines:
                    latest = lines[-1].id
                else:
                    self._latest = latest
                self._kept.extend(lines)
                while len(self._kept) > KEPT:
                    self._start = self._kept.popleft().id
                # A whole batch: there may be more.
                self._finished = finished and len(lines) < BATCH
                self._wake()
                while len(lines) < BATCH and self._latest <= latest and not self._finished:
                    self._news.clear()
                    await self._news.wait()
        except Exception:
            log.exception("the feed of job %s ends", self._job_id, extra={"job": self._job_id})
            self._break()

    def _break(self) -> None:
        self.broken = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _look(self, last_id: int) -> tuple[bool, list[Line]]:
        # The state is read last: of an end that comes later, the feed will hear.
        lines = self._read(last_id)
        if lines and not any(line.is_of_job for line in lines):
            return False, lines  # the end is an event, too
        if self._database.jobs.get(self._job_id).state not in FINISHED:
            return False, lines
        # What was written between the two.
        return True, lines + self._read(lines[-1].id if lines else last_id)

    def _read(self, last_id: int) -> list[Line]:
        events = self._database.events.after(self._job_id, last_id, BATCH)
        return [Line(event.id, self._sent(event), isinstance(event.change, JobChanged)) for event in events]

    def _sent(self, event: EventView) -> bytes:
        data = self._on_wire(event).model_dump_json()
        return ServerSentEvent(id=str(event.id), event=event.type.value, data=data).encode()

    async def _ask(self, question: Callable[[About], Answer], about: About) -> Answer:
        return await _answer(self._limiter, question, about)


async def _answer(limiter: anyio.CapacityLimiter, question: Callable[[About], Answer], about: About) -> Answer:
    """Ask the database in a thread, again and again while it is away. Raises `Unavailable` when patience is over."""
    since: float | None = None
    while True:
        try:
            return await anyio.to_thread.run_sync(question, about, limiter=limiter)
        except Unavailable:
            now = anyio.current_time()
            since = since or now
            if now - since > PATIENCE_SECONDS:
                raise
        await anyio.sleep(RETRY_SECONDS)

"""All streams of a job share one look at the database; each gets every event once, at its own pace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from db import Database, migrate
from db.views import EventView, JobView
from loopwright import schemas
from loopwright.codegen.kinds import JobState
from service.api import feeds
from service.api.feeds import FeedBroken, Feeds
from service.jobs import wire
from tests.contract.db.conftest import Clock, World
from tests.support import own_loop
from tuner.types import Measured


@dataclass
class RunningJob:
    """A job whose events the test makes."""

    world: World

    def __post_init__(self) -> None:
        self.claimed, self._task = self.world.started()
        self.id = self.claimed.job.id
        self._traces = 0

    def happen(self, events: int) -> None:
        """Have so many trials end."""
        traces = [f"[{self._traces + number}]" for number in range(events)]
        self._traces += events
        for trial in self.world.propose(self.claimed, self._task, *traces):
            assert self.world.db.trials.finish(trial.id, self.claimed.lease_token, Measured((1.0,), "worker"))

    def finish(self) -> None:
        assert self.world.db.jobs.finish(self.id, self.claimed.lease_token, JobState.SUCCEEDED)

    def ids(self) -> list[int]:
        return [event.id for event in self.world.db.events.after(self.id)]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningJob]:
    monkeypatch.setattr(feeds, "POLL_SECONDS", 0.01)
    url = f"sqlite:///{tmp_path}/loopwright.db"
    migrate.upgrade(url)
    database = Database(url, Clock())
    yield RunningJob(World(database, Clock()))
    database.close()


def follow(job: RunningJob, test: Callable[[Feeds], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with asyncio.timeout(60):
            return await test(Feeds(job.world.db, wire.event))

    return own_loop.run(run())


async def read(found: Feeds, job_id: str, last_id: int = 0, *, slow: bool = False) -> list[int]:
    """The ids of the lines to the end of the job."""
    ids: list[int] = []
    async with found.follow(job_id) as feed:
        while lines := await feed.after(last_id):
            for line in lines:
                last_id = line.id
                ids.append(line.id)
            await asyncio.sleep(0.05 if slow else 0)
    return ids


def test_many_streams_ask_the_database_as_one_does(job: RunningJob, monkeypatch: pytest.MonkeyPatch) -> None:
    read_from: list[int] = []
    ask = job.world.db.events.after

    def after(job_id: str, last_id: int = 0, limit: int = 500) -> list[EventView]:
        read_from.append(last_id)
        return ask(job_id, last_id, limit)

    monkeypatch.setattr(job.world.db.events, "after", after)
    job.happen(3)
    first = job.ids()[0]

    async def test(found: Feeds) -> list[list[int]]:
        streams = [asyncio.create_task(read(found, job.id, first)) for _ in range(50)]
        for _ in range(5):
            await asyncio.to_thread(job.happen, 4)
        await asyncio.to_thread(job.finish)
        return await asyncio.gather(*streams)

    streams = follow(job, test)
    of_the_feed = [last_id for last_id in read_from if last_id > first]
    assert streams == [job.ids()[1:]] * 50
    # Each stream reads what was before the feed. Of what came then, the feed reads at least one event at a time.
    assert 1 <= len(of_the_feed) <= 1 + 5 * 4 + 2


def test_streams_that_begin_at_the_same_place_share_what_was_before(
    job: RunningJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "KEPT", 3)
    monkeypatch.setattr(feeds, "BATCH", 4)
    monkeypatch.setattr(feeds, "PAGES", 2)
    read_from: list[int] = []
    ask = job.world.db.events.after

    def after(job_id: str, last_id: int = 0, limit: int = 500) -> list[EventView]:
        read_from.append(last_id)
        return ask(job_id, last_id, limit)

    monkeypatch.setattr(job.world.db.events, "after", after)
    job.happen(20)
    job.finish()

    async def test(found: Feeds) -> list[list[int]]:
        async with found.follow(job.id) as feed:
            while feed._start is None or not feed._finished:
                await asyncio.sleep(0.01)
            leaver = asyncio.create_task(feed.after(0))
            streams = [asyncio.create_task(read(found, job.id)) for _ in range(50)]
            await asyncio.sleep(0)
            leaver.cancel()
            read_ids = await asyncio.gather(*streams)
            assert len(feed._pages) <= 2
        return read_ids

    ids = job.ids()
    read_from.clear()
    assert follow(job, test) == [ids] * 50
    assert len(read_from) <= 2 * (len(ids) // 4 + 2), "each stream has read the history for itself"


def test_streams_that_begin_late_or_lag_miss_nothing_and_get_nothing_twice(
    job: RunningJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feed keeps few events; who needs earlier ones reads them from the database."""
    monkeypatch.setattr(feeds, "KEPT", 3)
    monkeypatch.setattr(feeds, "BATCH", 4)
    job.happen(20)

    async def test(found: Feeds) -> list[list[int]]:
        streams = [asyncio.create_task(read(found, job.id, slow=True))]
        for number in range(6):
            await asyncio.to_thread(job.happen, 5)
            streams.append(asyncio.create_task(read(found, job.id, job.ids()[number * 4], slow=number % 2 == 0)))
            assert len(found._feeds[job.id]._kept) <= 3
        await asyncio.to_thread(job.finish)
        return await asyncio.gather(*streams)

    ids = job.ids()
    streams = follow(job, test)
    whole = job.ids()
    assert len(whole) > len(ids)
    assert streams == [whole, *(whole[number * 4 + 1 :] for number in range(6))]


def test_one_event_is_enough_to_wake_a_follower(job: RunningJob) -> None:
    job.happen(1)

    async def test(found: Feeds) -> None:
        async with found.follow(job.id) as feed:
            last_id = job.ids()[-1]
            for _ in range(2):
                waiting = asyncio.create_task(feed.after(last_id))
                await asyncio.sleep(0.05)
                assert not waiting.done()
                await asyncio.to_thread(job.happen, 1)
                last_id = (await waiting)[-1].id
            waiting = asyncio.create_task(feed.after(job.ids()[-1]))
            await asyncio.sleep(0.05)
            await asyncio.to_thread(job.finish)
            assert (await waiting)[-1].id == job.ids()[-1]

    follow(job, test)


def test_a_number_from_the_future_delays_nobody_else(job: RunningJob) -> None:
    async def test(found: Feeds) -> list[list[int]]:
        streams = [asyncio.create_task(read(found, job.id, last_id)) for last_id in (2**62, 0)]
        await asyncio.sleep(0.05)
        await asyncio.to_thread(job.happen, 2)
        await asyncio.to_thread(job.finish)
        return await asyncio.gather(*streams)

    assert follow(job, test) == [[], job.ids()]


def test_a_feed_ends_with_its_last_stream(job: RunningJob) -> None:
    async def test(found: Feeds) -> None:
        async with found.follow(job.id) as feed:
            async with found.follow(job.id) as same:
                assert same is feed
            assert await feed.after(0)
            assert len(asyncio.all_tasks()) == 3
        await asyncio.sleep(0)
        assert feed._reader.done()
        assert not found._feeds
        assert asyncio.all_tasks() == {asyncio.current_task()}

    follow(job, test)


def test_a_job_without_news_is_not_read(job: RunningJob, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    look = feeds.Feed._look

    def counted(feed: feeds.Feed, last_id: int) -> tuple[bool, list[feeds.Line]]:
        looks.append(last_id)
        return look(feed, last_id)

    monkeypatch.setattr(feeds.Feed, "_look", counted)

    async def test(found: Feeds) -> list[int]:
        stream = asyncio.create_task(read(found, job.id))
        while not looks:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        assert len(looks) == 1
        await asyncio.to_thread(job.finish)
        return await stream

    assert follow(job, test) == job.ids()
    assert len(looks) == 2


@pytest.mark.parametrize("earlier", [True, False])
def test_an_end_in_the_middle_of_a_look_is_seen(
    job: RunningJob, monkeypatch: pytest.MonkeyPatch, earlier: bool
) -> None:
    get = job.world.db.jobs.get
    running = True

    def ends(job_id: str) -> JobView:
        nonlocal running
        view = get(job_id)
        if running:
            running = False
            job.finish()
        return get(job_id) if earlier else view

    monkeypatch.setattr(job.world.db.jobs, "get", ends)

    async def test(found: Feeds) -> list[int]:
        return await read(found, job.id)

    assert follow(job, test) == job.ids()


def test_a_database_that_is_gone_breaks_every_stream(job: RunningJob, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    ask = job.world.db.events.latest

    def latest(job_ids: Sequence[str]) -> dict[str, int]:
        nonlocal asked
        asked += 1
        if asked == 4:
            raise OSError("the disk is gone")
        return ask(job_ids)

    monkeypatch.setattr(job.world.db.events, "latest", latest)

    async def run() -> list[int]:
        found = Feeds(job.world.db, wire.event)
        streams = [asyncio.create_task(read(found, job.id)) for _ in range(3)]
        errors = await asyncio.gather(*streams, return_exceptions=True)
        assert [type(error) for error in errors] == [FeedBroken] * 3
        await asyncio.to_thread(job.finish)
        return await read(found, job.id)

    assert own_loop.run(run()) == job.ids()


def test_an_error_breaks_every_stream_and_the_next_has_a_new_feed(job: RunningJob) -> None:
    broken = True

    def event(view: EventView) -> schemas.Event:
        if broken:
            raise OSError("the disk is gone")
        return wire.event(view)

    async def run() -> list[int]:
        nonlocal broken
        found = Feeds(job.world.db, event)
        last = job.ids()[-1]
        streams = [asyncio.create_task(read(found, job.id, last)) for _ in range(3)]
        await asyncio.sleep(0.05)
        await asyncio.to_thread(job.happen, 2)
        errors = await asyncio.gather(*streams, return_exceptions=True)
        assert [type(error) for error in errors] == [FeedBroken] * 3
        broken = False
        await asyncio.to_thread(job.finish)
        return await read(found, job.id, last)

    started = job.ids()
    assert own_loop.run(run()) == job.ids()[len(started) :]

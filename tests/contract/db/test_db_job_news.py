"""Who waits for jobs is told that some were queued, and not that nothing happened."""

from __future__ import annotations

from tests.contract.db.conftest import World
from tests.support.waiting import wait_for


def test_news_come_with_each_way_into_the_queue_and_are_told_once(world: World) -> None:
    news = world.db.job_news()
    assert news.there_is(), "nobody knows what was there before"
    assert not news.there_is()
    world.job()
    wait_for("news", news.there_is)
    claimed = world.claim()
    news.there_is()
    assert world.db.jobs.release(claimed.job.id, claimed.lease_token)
    wait_for("news", news.there_is)
    assert not news.there_is()
    claimed = world.claim(seconds=30)
    world.clock.forward(31)
    news.there_is()
    assert world.db.jobs.claim("other", 30, machines=[]) is None
    wait_for("news: the job is queued again, for want of machines here", news.there_is)
    news.close()


def test_each_listener_is_told(world: World) -> None:
    first, second = world.db.job_news(), world.db.job_news()
    for news in (first, second):
        news.there_is()
        assert not news.there_is()
    world.job()
    wait_for("news for the one", first.there_is)
    wait_for("news for the other", second.there_is)
    for news in (first, second):
        news.close()


def test_one_that_was_cut_off_listens_again(world: World) -> None:
    news = world.db.job_news()
    news.there_is()
    news._connection.close()
    assert news.there_is(), "what happened meanwhile is not known"
    news.there_is()
    assert not news.there_is()
    world.job()
    wait_for("news", news.there_is)
    news.close()

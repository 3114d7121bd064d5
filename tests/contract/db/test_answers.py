"""Answers that the API keeps: made once for all who see the same, and never older than the request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from fastapi import Response
from starlette.responses import StreamingResponse

from db.access.views import Quota
from db.access.visibility import Viewer
from db.states import Scope
from service.api.answers import Answers, Make, Read
from tests.contract.db.conftest import World
from tests.support.own_loop import run
from tests.support.waiting import wait_for

ADA, BOB, GUEST = Viewer("ada"), Viewer("bob"), Viewer(None)
LONG = 3600.0


class Names:
    """Makes an answer of the names of all jobs that a viewer sees, and remembers for whom."""

    def __init__(self, world: World) -> None:
        self.answers = Answers()
        self.made_for: list[Viewer | None] = []
        self.before: Callable[[], Awaitable[None]] | None = None
        """Done after what the answer says was read."""
        self._db = world.db

    async def make(self, viewer: Viewer | None) -> Response:
        self.made_for.append(viewer)
        database = self._db if viewer is None else self._db.seen_by(viewer)
        text = " ".join(sorted(job.name for job in database.jobs.page().items))
        if self.before is not None:
            await self.before()
        return Response(text, media_type="text/plain")

    async def ask(self, viewer: Viewer | None, tags: str | None = None, make: Make | None = None) -> Response:
        return await self.answers.give(self._db, Read("/names?", viewer, tags), LONG, make or self.make)


@pytest.fixture
def names(world: World) -> Names:
    for name in ("ada", "bob"):
        world.db.users.create(name, Scope.SUBMIT, Quota())
    world.job("w0", name="open")
    return Names(world)


def text(response: Response) -> str:
    return bytes(response.body).decode()


def alone(check: Callable[[], bool]) -> None:
    """Check something that holds unless somebody else writes to the server meanwhile."""
    wait_for("a moment in which nobody else writes to the server", check)


def test_those_who_see_the_same_have_one_answer(names: Names) -> None:
    async def all_ask() -> list[Response]:
        return await asyncio.gather(*(names.ask(viewer) for viewer in [ADA, BOB, GUEST] * 20))

    answers = run(all_ask())
    assert {text(answer) for answer in answers} == {"open"}
    assert len({answer.headers["ETag"] for answer in answers}) == 1
    # Made again only for those that came after a commit of somebody else.
    assert len(names.made_for) < 10
    assert set(names.made_for) == {GUEST}


def test_what_is_private_reaches_nobody_else(world: World, names: Names) -> None:
    world.job("w1", name="secret", user_name="ada", private=True)
    seen = run(names.ask(ADA))
    assert text(seen) == "open secret"
    for other in (BOB, GUEST):
        answer = run(names.ask(other, tags=seen.headers["ETag"]))
        assert (answer.status_code, text(answer)) == (200, "open")
    assert text(run(names.ask(None))) == "open secret"
    assert names.made_for[:2] == [ADA, GUEST]


def test_a_first_private_job_is_in_no_shared_answer(world: World, names: Names) -> None:
    """Ada's request came before her first private job was stored, and her answer was made after it."""

    async def make(viewer: Viewer | None) -> Response:
        world.job("w1", name="secret", user_name="ada", private=True)
        return await names.make(viewer)

    assert text(run(names.ask(ADA, make=make))) == "open"
    assert text(run(names.ask(BOB))) == "open"
    assert text(run(names.ask(ADA))) == "open secret"


def test_an_answer_is_as_new_as_its_request(world: World, names: Names) -> None:
    """A second request comes while the answer to the first is made of what was there before."""

    async def second_comes() -> Response:
        names.before = None
        world.job("w1", name="new")
        asked = asyncio.create_task(names.ask(BOB))
        await asyncio.sleep(0)
        later.append(asked)
        return Response()

    async def both() -> tuple[Response, Response]:
        names.before = second_comes  # type: ignore[assignment]
        return await names.ask(ADA), await later[0]

    later: list[asyncio.Task[Response]] = []
    first, second = run(both())
    assert (text(first), text(second)) == ("open", "new open")


def test_a_caller_that_has_the_answer_is_sent_none(world: World, names: Names) -> None:
    tag = run(names.ask(BOB)).headers["ETag"]
    for tags in (tag, f'"other", W/{tag}', "*"):
        answer = run(names.ask(BOB, tags))
        assert (answer.status_code, text(answer), answer.headers["ETag"]) == (304, "", tag)
    assert run(names.ask(BOB, '"other"')).status_code == 200
    # Made anew, and the same.
    world.job("w1", name="secret", user_name="ada", private=True)
    assert run(names.ask(BOB, tag)).status_code == 304
    world.job("w2", name="more")
    answer = run(names.ask(BOB, tag))
    assert (answer.status_code, text(answer)) == (200, "more open")
    assert answer.headers["ETag"] != tag


def test_an_answer_is_made_again_when_it_is_too_old(world: World, names: Names) -> None:
    for _ in range(2):
        run(names.answers.give(world.db, Read("/names?", BOB, None), 0.0, names.make))
    assert len(names.made_for) == 2


def test_what_does_not_succeed_is_not_kept(names: Names) -> None:
    async def refuse(_: Viewer | None) -> Response:
        return Response("no", status_code=404)

    async def fail(_: Viewer | None) -> Response:
        raise RuntimeError("a fault")

    assert run(names.ask(BOB, "*", make=refuse)).status_code == 404
    with pytest.raises(RuntimeError, match="a fault"):
        run(names.ask(BOB, make=fail))
    assert text(run(names.ask(BOB))) == "open"


def test_the_least_recently_used_are_forgotten(world: World, names: Names) -> None:
    answers = Answers(most_bytes=10_000)

    async def make(_: Viewer | None) -> Response:
        return Response(b"x" * 1000)

    async def is_made(url: str) -> bool:
        made = []

        async def noted(viewer: Viewer | None) -> Response:
            made.append(viewer)
            return await make(viewer)

        await answers.give(world.db, Read(url, BOB, None), LONG, noted)
        return bool(made)

    async def are_made(*urls: str) -> list[bool]:
        return [await is_made(url) for url in urls]

    alone(lambda: run(are_made("a", "b", "a", "c", "d", "a", "b"))[2:] == [False, True, True, False, True])


def test_a_long_answer_is_not_kept(world: World) -> None:
    answers = Answers(most_bytes=8000)
    made = []

    async def make(_: Viewer | None) -> Response:
        made.append(1)
        return Response(b"x" * 1001)

    for _ in range(2):
        answer = run(answers.give(world.db, Read("long", None, None), LONG, make))
        assert len(answer.body) == 1001
    assert len(made) == 2


def test_what_is_sent_while_it_is_made_is_sent_again_after_a_commit(world: World, names: Names) -> None:
    async def make(_: Viewer | None) -> Response:
        return StreamingResponse(iter([b"a", b"b"]))

    def ask(tags: str | None) -> Response:
        return run(names.ask(BOB, tags, make=make))

    def is_known() -> bool:
        return ask(ask(None).headers["ETag"]).status_code == 304

    alone(is_known)
    tag = ask(None).headers["ETag"]
    world.job("w1")
    assert ask(tag).status_code == 200

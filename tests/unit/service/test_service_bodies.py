"""Bodies are limited in size, in values and in the memory that they take."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from starlette.types import Message, Receive, Scope, Send

from service.api.patience import RequestPatience
from service.bodies.shape import JsonLimits
from service.bodies.whole import WholeBody
from tests.support import own_loop
from tests.support.visitors import visitor


def _asked(middleware: WholeBody, pieces: list[bytes], headers: dict[str, str] | None = None) -> list[Message]:
    """What is sent in answer to a body that comes in ``pieces``."""
    return own_loop.run(_answer(middleware, pieces, headers or {}))


async def _answer(
    middleware: WholeBody, pieces: list[bytes], headers: dict[str, str], user: str = "somebody"
) -> list[Message]:
    sent: list[Message] = []
    left: Iterator[bytes] = iter(pieces)

    async def receive() -> Message:
        return {"type": "http.request", "body": next(left), "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "path": "/api/v1/jobs", "headers": encoded, "state": {"visitor": visitor(user)}}
    await middleware(scope, receive, send)
    return sent


async def _unreachable(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("the body should have been refused")


def test_a_body_that_is_too_large_is_refused_as_soon_as_it_is() -> None:
    middleware = WholeBody(_unreachable, 10, JsonLimits(), RequestPatience())
    assert _asked(middleware, [], {"content-length": "11"})[0]["status"] == 413
    assert _asked(middleware, [b"12345", b"12345", b"6"])[0]["status"] == 413


def test_json_of_too_many_values_is_refused_as_soon_as_it_is() -> None:
    middleware = WholeBody(_unreachable, 100, JsonLimits(values=4), RequestPatience())
    headers = {"content-type": "application/json"}
    assert _asked(middleware, [b"[1,2", b",3,4"], headers)[0]["status"] == 422


def test_bodies_take_a_limited_memory_until_they_are_answered() -> None:
    async def run() -> None:
        answered = asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            assert await receive() == {"type": "http.request", "body": b"1234567890", "more_body": False}
            await answered.wait()

        middleware = WholeBody(slow, 10, JsonLimits(), RequestPatience())

        def ask(user: str) -> asyncio.Task[None]:
            messages = iter([{"type": "http.request", "body": b"1234567890", "more_body": False}])

            async def receive() -> Message:
                return next(messages)

            scope = {"type": "http", "path": "/api/", "headers": [], "state": {"visitor": visitor(user)}}
            return asyncio.create_task(middleware(scope, receive, _unsent))

        async def _unsent(message: Message) -> None:
            raise AssertionError(message)

        waiting = [ask(user) for user in ("a", "a", "b", "b", "c", "c", "d", "d")]
        await asyncio.sleep(0)
        for user, status in (("a", 429), ("e", 503)):
            (start, _) = await _answer(middleware, [b"1"], {}, user)
            assert start["status"] == status
        answered.set()
        await asyncio.gather(*waiting)
        await ask("a")

    own_loop.run(run())

"""The request that a thread works on: its caller, and whether the caller is still connected."""

from __future__ import annotations

import asyncio
import contextlib
from contextvars import ContextVar
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.caller import caller_of
from service.problems import ProblemError


@dataclass(slots=True)
class Ongoing:
    """``left``: the connection was closed, so nobody can read the answer. The event loop sets it, and threads read it.

    ``caller`` is the value of `caller_of`.
    """

    caller: str
    left: bool = False

    def stay(self) -> None:
        """Raise ProblemError if the caller has left, which ends the work on its request."""
        if self.left:
            raise ProblemError(503, "caller-left", "The connection was closed before the answer was there.")


_current: ContextVar[Ongoing | None] = ContextVar("ongoing", default=None)


def ongoing() -> Ongoing | None:
    """Return the request that this thread or task works on, if any."""
    return _current.get()


class Watched:
    """ASGI middleware: watches the connection of a request whose body is there already (see `WholeBody`)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/api/"):
            await self._app(scope, receive, send)
            return
        request = Ongoing(caller_of(scope))
        body: Message | None = await receive()
        watcher = asyncio.create_task(_watch(request, receive))

        async def hand() -> Message:
            nonlocal body
            if body is not None:
                message, body = body, None
                return message
            await asyncio.shield(watcher)
            return {"type": "http.disconnect"}

        _current.set(request)
        try:
            await self._app(scope, hand, send)
        finally:
            watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watcher


async def _watch(request: Ongoing, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    request.left = True

"""Receive a whole body within limits before the app handles the request."""

from __future__ import annotations

import asyncio
import contextlib
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.patience import RequestPatience
from service.api.shares import Shares
from service.bodies.shape import JsonLimits, JsonShape
from service.caller import caller_of
from service.problems import ProblemError, answer

_PER_CALLER = 2
_IN_ALL = 8
"""Bodies of the largest size that are in memory at a time. Not tuned."""


class WholeBody:
    """ASGI middleware: below ``/api``, the app gets the whole body in one message, or is not called.

    A body over ``limit`` bytes is answered 413, whether its length was announced or not; one of too many values is
    answered 422; one that comes too slowly, 408; one for which there is no memory, 429 or 503. Elsewhere nothing reads
    bodies.
    """

    def __init__(self, app: ASGIApp, limit: int, json: JsonLimits, patience: RequestPatience) -> None:
        self._app = app
        self._limit = limit
        self._json = json
        self._patience = patience
        self._memory = Shares("bytes of bodies", each=_PER_CALLER * limit, total=_IN_ALL * limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/api/"):
            await self._app(scope, receive, send)
            return
        with contextlib.ExitStack() as memory:
            try:
                body = await self._receive(scope, receive, memory)
            except ProblemError as error:
                await answer(error)(scope, receive, send)
                return
            if body is not None:
                await self._app(scope, _once(body, receive), send)

    async def _receive(self, scope: Scope, receive: Receive, memory: contextlib.ExitStack) -> bytes | None:
        """Return the body, or None if the caller has left. Raises ProblemError."""
        headers = Headers(scope=scope)
        announced = headers.get("content-length", "")
        if announced.isdigit() and int(announced) > self._limit:
            raise self._too_large()
        # FastAPI parses nothing that does not call itself so.
        shape = JsonShape(self._json) if "json" in headers.get("content-type", "").lower() else None
        caller = caller_of(scope)
        pieces: list[bytes] = []
        received = 0
        more = True
        started = time.monotonic()
        while more:
            message = await self._next(receive, started, received)
            if message["type"] == "http.disconnect":
                return None
            piece = message.get("body", b"")
            more = message.get("more_body", False)
            received += len(piece)
            if received > self._limit:
                raise self._too_large()
            memory.enter_context(self._memory.hold(caller, len(piece)))
            if shape is not None:
                shape.feed(piece)
            pieces.append(piece)
        return b"".join(pieces)

    async def _next(self, receive: Receive, started: float, received: int) -> Message:
        """Return what the server has next. Raises ProblemError (408)."""
        patience = self._patience
        left = started + patience.body + received / patience.body_rate - time.monotonic()
        try:
            async with asyncio.timeout(min(left, patience.stall)):
                return await receive()
        except TimeoutError:
            detail = f"The body came too slowly: only {received} bytes of it arrived in time. Send the request again."
            raise ProblemError(408, "body-too-slow", detail, headers={"Connection": "close"}) from None

    def _too_large(self) -> ProblemError:
        detail = (
            f"The body is larger than {self._limit / 2**20:g} MiB. "
            "Submit the module without its weights: schedules do not depend on them."
        )
        return ProblemError(413, "body-too-large", detail)


def _once(body: bytes, receive: Receive) -> Receive:
    """Return what the app receives: the body, then what the server has to say."""
    handed = False

    async def hand() -> Message:
        nonlocal handed
        if handed:
            return await receive()
        handed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return hand

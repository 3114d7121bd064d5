"""Refusing requests without a token before anything of their bodies is read."""

from __future__ import annotations

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from service.access.authorised import session
from service.problems import ProblemError, answer


class TokenFirst:
    """ASGI middleware: 401 for a request under ``/api`` without a token that holds.

    FastAPI reads and parses a body before the dependencies of its endpoint: strangers could have it parse anything.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/api/"):
            try:
                session(Request(scope), None)
            except ProblemError as error:
                await answer(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

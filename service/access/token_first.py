"""Refuse requests without a token before their bodies are read."""

from __future__ import annotations

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from db.errors import Unavailable
from service.context import Context
from service.identity import credentials
from service.identity.visitor import Visitor, identify
from service.problems import ProblemError, answer, unavailable

SESSION_PATH = "/api/v1/session"
_THREADS = 4
"""That look tokens up: others than those that answer requests, which may all be waiting for something."""


class TokenFirst:
    """ASGI middleware: answers 401 to a request under ``/api`` without a valid token, and else sets ``state.visitor``.

    FastAPI parses a body before it calls the dependencies of the endpoint, so anyone could make it parse anything.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._limiter: anyio.CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/api/"):
            if self._limiter is None:
                self._limiter = anyio.CapacityLimiter(_THREADS)
            try:
                shown = credentials.read(Headers(scope=scope), scope["method"])
                if _is_remembered(scope, shown):
                    visitor = _visitor(scope, shown)
                else:
                    visitor = await anyio.to_thread.run_sync(_visitor, scope, shown, limiter=self._limiter)
            except ProblemError as error:
                await answer(error)(scope, receive, send)
                return
            except Unavailable as error:
                await answer(unavailable(error))(scope, receive, send)
                return
            scope.setdefault("state", {})["visitor"] = visitor
        await self._app(scope, receive, send)


def _is_remembered(scope: Scope, shown: credentials.Shown | None) -> bool:
    """Whether to say who asks takes no database, and so no thread, which costs a busy process more than the answer."""
    context: Context = scope["app"].state.context
    return isinstance(shown, credentials.Bearer | credentials.Cookie) and context.identities.remembers(shown.secret)


def _visitor(scope: Scope, shown: credentials.Shown | None) -> Visitor:
    context: Context = scope["app"].state.context
    if isinstance(shown, credentials.Code) and (scope["method"], scope["path"]) != ("POST", SESSION_PATH):
        shown = None
    return identify(shown, context.identities, context.database, guests=context.settings.guests)

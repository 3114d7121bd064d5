"""Refuse requests for unknown hosts."""

from __future__ import annotations

import urllib.parse

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.problems import ProblemError, answer


class KnownHost:
    """ASGI middleware: answers 421 if ``Host`` is not in ``hosts``. None: any host is accepted.

    Otherwise, a page of another site whose name resolves to this machine would have the same origin as the service.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str] | None) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._hosts is not None and _host(Headers(scope=scope)) not in self._hosts:
            detail = (
                f"The service does not answer for the host {Headers(scope=scope).get('host', '')!r}. Use an address "
                "that the service knows, or add the host to LOOPWRIGHT_ALLOWED_HOSTS."
            )
            await answer(ProblemError(421, "unknown-host", detail))(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _host(headers: Headers) -> str | None:
    """Return the name or address that a request asks for, without a port; None if it is none."""
    try:
        return urllib.parse.urlsplit(f"//{headers.get('host', '')}").hostname
    except ValueError:
        return None

"""Refuse requests for unknown hosts."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.problems import ProblemError, answer

_HOST = re.compile(r"(\[(?P<address>[\da-fA-F:.]+)\]|(?P<name>[\w.-]+))(:(?P<port>\d{1,5}))?", re.ASCII)
_LAST_PORT = 65_535


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
    """Return the name or address that a request asks for, in small letters and without a port; None if it is none."""
    found = _HOST.fullmatch(headers.get("host", ""))
    if found is None or int(found["port"] or 0) > _LAST_PORT:
        return None
    return (found["address"] or found["name"]).lower()

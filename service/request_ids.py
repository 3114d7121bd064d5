"""An id for each request, by which its lines in the log are found."""

from __future__ import annotations

import logging
import re
import secrets
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.request_metrics import PROBES, route_of
from service.identity.visitor import Visitor
from service.logs.ids import about_request
from service.problems import REQUEST_ID

_WELL_FORMED = re.compile(r"[A-Za-z0-9._:-]{1,64}")

log = logging.getLogger("loopwright.requests")


class Identified:
    """ASGI middleware: uses the caller's id if it is well-formed, else generates one, and adds it to the answer.

    ``log_requests``: log each request when it is answered, except successful probes. Event
    streams are answered when they end.
    """

    def __init__(self, app: ASGIApp, log_requests: bool) -> None:
        self._app = app
        self._log_requests = log_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = given if _WELL_FORMED.fullmatch(given) else secrets.token_hex(8)
        about_request(request_id)
        status = 500
        started = time.perf_counter()

        async def identified(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        try:
            await self._app(scope, receive, identified)
        finally:
            if self._log_requests and not (scope["path"] in PROBES and status < 400):
                _write(scope, status, 1e3 * (time.perf_counter() - started))


def _write(scope: Scope, status: int, milliseconds: float) -> None:
    visitor: Visitor | None = scope.get("state", {}).get("visitor")
    facts = {
        "method": scope["method"],
        "route": route_of(scope),
        "status": status,
        "milliseconds": round(milliseconds, 1),
        "user": None if visitor is None else visitor.user,
    }
    log.info("%(method)s %(route)s %(status)d in %(milliseconds).1f ms", facts, extra=facts)

"""The audit log: requested changes, by whom, and whether they were refused."""

from __future__ import annotations

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.context import Context
from service.identity.rights import READS, needed
from service.identity.visitor import Visitor

_REFUSED = (403, 429)


class AuditTrail:
    """ASGI middleware: writes every change, and every refused change, to the audit log before the answer is sent.

    Invalid requests (404, 422) are not logged, because they change nothing and concern their sender only.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/api/"):
            await self._app(scope, receive, send)
            return

        async def audited(message: Message) -> None:
            if message["type"] == "http.response.start" and _matters(scope, message["status"]):
                await anyio.to_thread.run_sync(_write, scope, message)
            await send(message)

        await self._app(scope, receive, audited)


def _matters(scope: Scope, status: int) -> bool:
    if "endpoint" not in scope or not (status < 400 or status in _REFUSED):
        return False
    if scope["method"] in READS:
        return status in _REFUSED
    return needed(scope["endpoint"], scope["method"]) != "read" or status in _REFUSED


def _write(scope: Scope, message: Message) -> None:
    context: Context = scope["app"].state.context
    visitor: Visitor = scope["state"]["visitor"]
    client = scope.get("client")
    context.database.audit.add(
        user_name=visitor.user,
        token_id=visitor.bearer.token_id,
        action=scope["endpoint"].__name__,
        # What was made says more than where it was asked for.
        object=Headers(raw=message["headers"]).get("location", scope["path"]),
        status=message["status"],
        address=client[0] if client else "",
    )

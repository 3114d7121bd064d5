"""Security headers of every answer: browsers run the dashboard's code only, and no other page can frame it."""

from __future__ import annotations

import secrets
from collections.abc import MutableMapping
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NONCE_PLACE = "__NONCE__"
"""In the dashboard's page: where the nonce goes, with which the page may add style sheets."""
DOCUMENTATION = "/docs/"
"""Where the documentation is."""
_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; "
    # Components set the style of an element by its attribute, for which there are no nonces.
    "style-src-elem 'self' {styles}; style-src-attr 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class SafeHeaders:
    """ASGI middleware: adds the headers to every answer. Answers of the API must not be cached."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = secrets.token_urlsafe(16)
        scope["nonce"] = nonce

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                # Mermaid draws with style sheets of its own, and knows no nonces.
                is_documentation = scope["path"].startswith(DOCUMENTATION)
                styles = "'unsafe-inline'" if is_documentation else f"'nonce-{nonce}'"
                headers["Content-Security-Policy"] = _POLICY.format(styles=styles)
                if scope["path"].startswith("/api/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, guarded)


def with_nonce(page: str, scope: MutableMapping[str, Any]) -> str:
    """Return the dashboard's page with the nonce of the answer that ``scope`` belongs to."""
    return page.replace(NONCE_PLACE, scope["nonce"])

"""Whom limits are counted for."""

from __future__ import annotations

from starlette.types import Scope

from service.identity.visitor import Visitor


def caller_of(scope: Scope) -> str:
    """Return the user who asks, whichever token the request shows, or of a guest the link; "" where nobody is known."""
    visitor: Visitor | None = scope.get("state", {}).get("visitor")
    if visitor is None:
        return ""
    return f"link {visitor.bearer.token_id}" if visitor.is_guest else f"user {visitor.user}"

"""The caller for whom limits are counted."""

from __future__ import annotations

from starlette.types import Scope

from service.identity.visitor import Visitor


def caller_of(scope: Scope) -> str:
    """Return the user of the request, or for a guest the link; "" if the request has no visitor."""
    visitor: Visitor | None = scope.get("state", {}).get("visitor")
    if visitor is None:
        return ""
    return f"link {visitor.bearer.token_id}" if visitor.is_guest else f"user {visitor.user}"

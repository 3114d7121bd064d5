"""Whom limits are counted for."""

from __future__ import annotations

import hashlib

from starlette.datastructures import Headers
from starlette.types import Scope


def caller_of(scope: Scope) -> str:
    """Return a name for the bearer of a request's token, which does not tell the token. Without a token: of nobody."""
    _, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    return hashlib.sha256(token.strip().encode()).hexdigest()

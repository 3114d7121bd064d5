"""Letting requests pass that may: any of the owner's, and those of a guest that only read."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from loopwright.schemas import Right, Session
from service.access import links
from service.context import context
from service.problems import ProblemError

Endpoint = TypeVar("Endpoint", bound=Callable[..., object])

_READS = ("GET", "HEAD")
_READING: set[Callable[..., object]] = set()
_OWNER: list[Right] = ["read", "submit", "cancel", "import", "readmit"]


def reads(endpoint: Endpoint) -> Endpoint:
    """Mark an endpoint that changes nothing though it is a POST, so that guests may use it."""
    _READING.add(endpoint)
    return endpoint


_bearer = HTTPBearer(auto_error=False, description="The service's token, or a guest's.")


def session(request: Request, _: Annotated[object, Depends(_bearer)]) -> Session:
    """Who asks. Raises ProblemError: 401 without a token that holds."""
    ctx = context(request)
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    given = given.strip()
    if scheme.lower() == "bearer":
        if secrets.compare_digest(given.encode(), ctx.token.encode()):
            rights: list[Right] = [*_OWNER, "invite"] if ctx.settings.guests else list(_OWNER)
            return Session(role="owner", rights=rights, expires_at=None)
        ends = links.read(ctx.token, given) if ctx.settings.guests else None
        if ends is not None and ends > datetime.now(UTC):
            return Session(role="guest", rights=["read"], expires_at=ends)
        if ends is not None:
            raise _unauthorised("link-expired", "This guest's link has ended; ask whoever sent it for a new one.")
    raise _unauthorised(
        "unauthorised",
        "Send the service's token as 'Authorization: Bearer TOKEN'. It stands in the URL that the service printed "
        "and in the file 'token' of its data directory; 'loopwright login' saves it.",
    )


Visitor = Annotated[Session, Depends(session)]


def authorised(request: Request, visitor: Visitor) -> None:
    """Let a request pass. Raises ProblemError: 401 as `session` does, 403 where a guest would change something."""
    changes = request.method not in _READS and request.scope["endpoint"] not in _READING
    if visitor.role == "guest" and changes:
        raise ProblemError(
            403,
            "guests-only-read",
            "This is a guest's link: it reads and changes nothing. Sign in with the service's token for that.",
        )


def _unauthorised(kind: str, detail: str) -> ProblemError:
    return ProblemError(401, kind, detail, headers={"WWW-Authenticate": "Bearer"})

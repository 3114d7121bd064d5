"""The visitor, a user or a guest, identified by the credentials of a request."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from db import Database
from db.access.views import BearerView
from db.access.visibility import Viewer
from db.states import Scope
from loopwright.codegen.kinds import TokenKind
from loopwright.schemas import Right
from service.identity import credentials
from service.identity.rights import needed, rights
from service.problems import ProblemError

_KEPT_SECONDS = 5.0
"""How long another process may accept a token that was revoked: for so long it is not asked for again."""
_MOST_KEPT = 10_000


class Identities:
    """Caches for some seconds whose each token is, so that not every request reads the database. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._tokens = database.tokens
        self._kept: dict[str, tuple[BearerView, float]] = {}
        self._lock = threading.Lock()

    def find(self, secret: str) -> BearerView | None:
        """Return the bearer of a token, which may have expired or been revoked; None for an unknown token."""
        now = time.monotonic()
        with self._lock:
            bearer, until = self._kept.get(secret, (None, 0.0))
        if bearer is not None and now < until:
            return bearer
        bearer = self._tokens.bearer(secret)
        with self._lock:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            if bearer is not None:
                self._kept[secret] = bearer, now + _KEPT_SECONDS
        return bearer

    def remembers(self, secret: str) -> bool:
        """Return whether `find` can answer without the database."""
        with self._lock:
            _, until = self._kept.get(secret, (None, 0.0))
        return time.monotonic() < until

    def forget(self) -> None:
        """Clear the cache, because tokens have changed."""
        with self._lock:
            self._kept.clear()


@dataclass(frozen=True, slots=True)
class Visitor:
    """The caller. ``secret`` is the token of the request; ``rights`` are the visitor's rights."""

    bearer: BearerView
    secret: str
    rights: tuple[Right, ...]

    @property
    def user(self) -> str:
        return self.bearer.user_name

    @property
    def is_guest(self) -> bool:
        return self.bearer.kind is TokenKind.GUEST

    @property
    def viewer(self) -> Viewer | None:
        """The restriction of what the visitor sees of the database; None: no restriction."""
        if self.bearer.scope is Scope.ADMIN:
            return None
        return Viewer(None if self.is_guest else self.user)


def identify(
    shown: credentials.Shown | None,
    ids: Identities,
    db: Database,
    *,
    guests: bool,
) -> Visitor:
    """Return the visitor. Raise ProblemError (401) without a valid token. A code becomes invalid by this call."""
    if isinstance(shown, credentials.Code):
        bearer = db.tokens.redeem(shown.secret)
        if bearer is None:
            raise _unauthorised(
                "code-ended",
                "This address has signed a browser in before, or is too old. 'loopwright dashboard' prints a new one.",
            )
    elif shown is None:
        raise _unauthorised("unauthorised", f"The request has no token. {_HELP}")
    else:
        bearer = ids.find(shown.secret)
        if bearer is None or bearer.kind is TokenKind.CODE or (bearer.kind is TokenKind.GUEST and not guests):
            raise _unauthorised("unauthorised", f"The service does not know this token. {_HELP}")
        if bearer.ended and bearer.kind is TokenKind.GUEST:
            raise _unauthorised(
                "link-expired", "This guest link has expired or was revoked. Ask its sender for a new one."
            )
        if bearer.ended:
            raise _unauthorised("token-ended", "This token has expired or was revoked. Sign in with another token.")
    return Visitor(bearer, shown.secret, tuple(rights(bearer.scope, guests)))


_HELP = (
    "Send a token as 'Authorization: Bearer TOKEN'. That of the service's owner is in the file 'token' of its data "
    "directory; users get theirs from an admin. 'loopwright login' saves one."
)
_bearer = HTTPBearer(auto_error=False, description="A token, a guest's too; browsers that are signed in send a cookie.")


async def current(request: Request, _: Annotated[object, Depends(_bearer)]) -> Visitor:
    """Return the visitor that the middleware identified."""
    visitor: Visitor = request.state.visitor
    return visitor


Asking = Annotated[Visitor, Depends(current)]


async def authorised(request: Request, visitor: Asking) -> None:
    """Let a request pass. Raise ProblemError (403) if the visitor lacks the right that its endpoint needs."""
    right = needed(request.scope["endpoint"], request.method)
    if right in visitor.rights:
        return
    if visitor.is_guest:
        raise ProblemError(
            403,
            "guests-only-read",
            "A guest link allows only reading. Sign in with a token of your own for this request.",
        )
    if right == "invite":
        raise ProblemError(
            403, "no-guests", "This service admits no guests. An operator can start it with LOOPWRIGHT_GUESTS=true."
        )
    raise ProblemError(
        403,
        "not-allowed",
        f"This token of {visitor.user} has the rights {', '.join(visitor.rights)}; this request needs {right}. "
        "Use a token of a wider scope, or ask an admin.",
    )


def _unauthorised(kind: str, detail: str) -> ProblemError:
    return ProblemError(401, kind, detail, headers={"WWW-Authenticate": "Bearer"})

"""Who asks and what they may do: sessions, tokens, users with their limits and use, the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from loopwright.schemas.base import Label, Wire

Right = Literal["read", "submit", "cancel", "import", "invite", "readmit", "administer"]
Scope = Literal["read", "submit", "admin"]
"""What a user or a token may do; each scope includes those before it."""
TokenKind = Literal["owner", "token", "session", "guest"]
UserName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,39}$")]
Days = Annotated[int, Field(ge=1, le=3650)]


class Me(Wire):
    """Who the bearer of the token is, and what it may do."""

    user: str
    kind: TokenKind
    scope: Scope
    rights: list[Right]
    expires_at: datetime | None


class NewGuestLink(Wire):
    """Body of ``POST /guest-links``."""

    days: int = Field(default=7, ge=1, le=365)


class GuestLink(Wire):
    """A token that reads what everybody shares and changes nothing; ``id`` revokes it."""

    id: str
    token: str
    path: str
    """Where the dashboard takes it, below the service's URL."""
    expires_at: datetime


class LoginCode(Wire):
    """A code that signs one browser in, once."""

    code: str
    path: str
    """Where the dashboard takes it, below the service's URL."""
    expires_at: datetime


class Token(Wire):
    """A token without its secret, which the service does not store."""

    id: str
    user: str
    kind: TokenKind
    name: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None
    """When it was last used, to some minutes."""


class NewToken(Wire):
    """Body of ``POST /tokens``. ``user``: for whom, by admins only. ``days`` None: valid until it is revoked."""

    name: Label
    scope: Scope = "submit"
    days: Days | None = None
    user: UserName | None = None


class TokenMade(Wire):
    """A new token; ``secret`` is shown this once."""

    token: Token
    secret: str


class Quota(Wire):
    """Limits of a user; None: no limit. A day is one of UTC; what is left of it is checked when a job is submitted."""

    active_jobs: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Jobs that are queued or running."""
    daily_trials: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Trials that finished today, and all that active jobs may still make."""
    daily_device_seconds: float | None = Field(default=None, ge=0, le=1e9)
    """Seconds in measuring slots."""
    daily_bytes: int | None = Field(default=None, ge=0, le=2**53)
    """Bytes of submitted modules."""


class DayOfUse(Wire):
    """What a user used on a day (UTC, as in 2030-01-31)."""

    day: str
    jobs: int
    trials: int
    device_seconds: float
    bytes: int


class Use(Wire):
    """What a user uses, beside the limits. ``pending_trials`` are those that active jobs may still make."""

    user: str
    quota: Quota
    active_jobs: int
    pending_trials: int
    today: DayOfUse
    days: list[DayOfUse]
    """The newest first; days without use are left out."""


class User(Wire):
    """Somebody who may sign in; ``role`` is what the user's tokens may do at most."""

    name: str
    role: Scope
    quota: Quota
    created_at: datetime
    disabled_at: datetime | None


class NewUser(Wire):
    """Body of ``POST /users``; without ``quota``, the service's limits for new users."""

    name: UserName
    role: Scope = "submit"
    quota: Quota | None = None


class ChangeUser(Wire):
    """Body of ``PATCH /users/{name}``: what is given is changed. The tokens of a user who is disabled are revoked."""

    role: Scope | None = None
    quota: Quota | None = None
    disabled: bool | None = None


class AuditEntry(Wire):
    """A change, or a refusal. ``action`` is the operation's name, ``object`` its path, ``status`` HTTP's."""

    at: datetime
    user: str
    token_id: str
    action: str
    object: str
    status: int
    address: str

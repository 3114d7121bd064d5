"""Access: sessions, tokens, users with their limits and use, and the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from loopwright.codegen.kinds import TokenKind
from loopwright.schemas.base import Label, Wire

BearerKind = Literal[TokenKind.OWNER, TokenKind.TOKEN, TokenKind.SESSION, TokenKind.GUEST]
"""The kinds of tokens that somebody bears; a code is exchanged for a session at once."""
Right = Literal["read", "submit", "cancel", "import", "invite", "readmit", "administer"]
Scope = Literal["read", "submit", "admin"]
"""The rights of a user or a token; each scope includes the previous ones."""
UserName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,39}$")]
Days = Annotated[int, Field(ge=1, le=3650)]


class Me(Wire):
    """The bearer of the token, and its rights."""

    user: str
    """Name of the user."""
    kind: BearerKind
    """What the bearer is: the ``owner``'s token, a ``token`` that somebody made, the ``session`` of a browser, or a
    ``guest``'s link."""
    scope: Scope
    """The scope of the token."""
    rights: list[Right]
    """The rights of the token. The reference names the right that each endpoint needs."""
    expires_at: datetime | None
    """When it expires; None: it is valid until it is revoked."""


class NewGuestLink(Wire):
    """Body of ``POST /guest-links``."""

    days: int = Field(default=7, ge=1, le=365)
    """Days for which the link is valid."""


class GuestLink(Wire):
    """A token that may read everything that is not private, and change nothing; ``id`` revokes it."""

    id: str
    """Id of the token, for ``DELETE /tokens/{id}``."""
    token: str
    """The secret. Only this answer contains it."""
    path: str
    """Path of the dashboard that signs in with it, below the service's URL."""
    expires_at: datetime
    """When it expires."""


class LoginCode(Wire):
    """A code that signs in one browser, once."""

    code: str
    """The code. Only this answer contains it."""
    path: str
    """Path of the dashboard that signs in with it, below the service's URL."""
    expires_at: datetime
    """When it expires, if it was not used before."""


class Token(Wire):
    """A token without its secret, which the service does not store."""

    id: str
    """Id of the token, for ``DELETE /tokens/{id}``."""
    user: str
    """User of the token."""
    kind: BearerKind
    """The ``owner``'s token, a ``token`` that somebody made, the ``session`` of a browser, or a ``guest``'s link."""
    name: str
    """Name of the token."""
    scope: Scope
    """The scope of the token."""
    created_at: datetime
    """When it was created."""
    expires_at: datetime | None
    """When it expires; None: it is valid until it is revoked."""
    revoked_at: datetime | None
    """When it was revoked; None if it was not."""
    used_at: datetime | None
    """When it was last used, to some minutes."""


class NewToken(Wire):
    """Body of ``POST /tokens``. Only admins may give ``user``. ``days`` None: valid until it is revoked."""

    name: Label
    """Name of the token in lists."""
    scope: Scope = "submit"
    """The scope of the token; at most the scope of the caller's token."""
    days: Days | None = None
    """Days for which it is valid; None: until it is revoked."""
    user: UserName | None = None
    """User of the token; None: the calling user. Only admins may name another user."""


class TokenMade(Wire):
    """A new token. Only this answer contains the ``secret``."""

    token: Token
    """The token, as it is listed."""
    secret: str
    """The secret to send as ``Authorization: Bearer``. Only this answer contains it."""


class Quota(Wire):
    """Limits of a user; None: no limit. Days are those of UTC. Limits are checked when a job is submitted."""

    active_jobs: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Jobs that are queued or running."""
    daily_trials: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Trials that finished today, and trials that active jobs may still run."""
    daily_device_seconds: float | None = Field(default=None, ge=0, le=1e9)
    """Seconds in measuring slots."""
    daily_bytes: int | None = Field(default=None, ge=0, le=2**53)
    """Bytes of submitted modules."""


class DayOfUse(Wire):
    """A user's use of the service on a day (UTC, as in 2030-01-31)."""

    day: str
    """The day in UTC, as in 2030-01-31."""
    jobs: int
    """Jobs submitted."""
    trials: int
    """Trials that finished."""
    device_seconds: float
    """Seconds in measuring slots."""
    bytes: int
    """Bytes of submitted modules."""


class Use(Wire):
    """A user's use and limits. ``pending_trials`` are trials that active jobs may still run."""

    user: str
    """Name of the user."""
    quota: Quota
    """The user's limits."""
    active_jobs: int
    """Jobs that are queued or running."""
    pending_trials: int
    """Trials that active jobs may still run."""
    today: DayOfUse
    """Use of today (UTC)."""
    days: list[DayOfUse]
    """Use of each day, the newest first; days without use are not listed."""


class User(Wire):
    """A user; ``role`` is the widest scope of the user's tokens."""

    name: str
    """Name of the user."""
    role: Scope
    """The widest scope of the user's tokens."""
    quota: Quota
    """The user's limits."""
    created_at: datetime
    """When it was created."""
    disabled_at: datetime | None
    """When the user was disabled; None if the user is not."""


class NewUser(Wire):
    """Body of ``POST /users``; without ``quota``, the service's limits for new users."""

    name: UserName
    """Lower-case letters, digits, dots, underscores and hyphens; the first is a letter or a digit."""
    role: Scope = "submit"
    """The widest scope of the user's tokens."""
    quota: Quota | None = None
    """The user's limits; None: the service's limits for new users."""


class ChangeUser(Wire):
    """Body of ``PATCH /users/{name}``: given fields are changed. Disabling a user revokes the user's tokens."""

    role: Scope | None = None
    """The new role; None: unchanged."""
    quota: Quota | None = None
    """The new limits, all of them; None: unchanged."""
    disabled: bool | None = None
    """Whether the user is disabled; None: unchanged."""


class AuditEntry(Wire):
    """A requested change, which may have been refused. ``status`` is the HTTP status of the answer."""

    at: datetime
    """Time of the request."""
    user: str
    """User who sent the request."""
    token_id: str
    """Id of the token of the request."""
    action: str
    """Name of the operation, such as ``submit_job``."""
    object: str
    """Path of the request."""
    status: int
    """HTTP status of the answer."""
    address: str
    """Address of the sender."""

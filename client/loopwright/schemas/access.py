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
    """Name of the user."""
    kind: TokenKind
    """What the bearer is: the ``owner``'s token, a ``token`` that somebody made, the ``session`` of a browser, or a
    ``guest``'s link."""
    scope: Scope
    """The most that it may do."""
    rights: list[Right]
    """What it may do in detail. A right is named with each endpoint."""
    expires_at: datetime | None
    """When it expires; None: it is valid until it is revoked."""


class NewGuestLink(Wire):
    """Body of ``POST /guest-links``."""

    days: int = Field(default=7, ge=1, le=365)
    """Days for which the link is valid."""


class GuestLink(Wire):
    """A token that reads what everybody shares and changes nothing; ``id`` revokes it."""

    id: str
    """Id of the token, for ``DELETE /tokens/{id}``."""
    token: str
    """The secret. It is in this answer only."""
    path: str
    """Where the dashboard takes it, below the service's URL."""
    expires_at: datetime
    """When it expires."""


class LoginCode(Wire):
    """A code that signs one browser in, once."""

    code: str
    """The code. It is in this answer only."""
    path: str
    """Where the dashboard takes it, below the service's URL."""
    expires_at: datetime
    """When it expires, if it was not used before."""


class Token(Wire):
    """A token without its secret, which the service does not store."""

    id: str
    """Id of the token, for ``DELETE /tokens/{id}``."""
    user: str
    """Whose token it is."""
    kind: TokenKind
    """The ``owner``'s token, a ``token`` that somebody made, the ``session`` of a browser, or a ``guest``'s link."""
    name: str
    """What its maker called it."""
    scope: Scope
    """The most that its bearer may do."""
    created_at: datetime
    """When it was created."""
    expires_at: datetime | None
    """When it expires; None: it is valid until it is revoked."""
    revoked_at: datetime | None
    """When it was revoked; None if it was not."""
    used_at: datetime | None
    """When it was last used, to some minutes."""


class NewToken(Wire):
    """Body of ``POST /tokens``. ``user``: for whom, by admins only. ``days`` None: valid until it is revoked."""

    name: Label
    """What to call it, in the list of tokens."""
    scope: Scope = "submit"
    """The most that its bearer may do; not more than the token that asks."""
    days: Days | None = None
    """Days for which it is valid; None: until it is revoked."""
    user: UserName | None = None
    """For whom it is; None: for whoever asks. Only admins name another user."""


class TokenMade(Wire):
    """A new token; ``secret`` is shown this once."""

    token: Token
    """The token, as it is listed."""
    secret: str
    """The secret to send as ``Authorization: Bearer``. It is in this answer only."""


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
    """What a user uses, beside the limits. ``pending_trials`` are those that active jobs may still make."""

    user: str
    """Name of the user."""
    quota: Quota
    """The user's limits."""
    active_jobs: int
    """Jobs that are queued or running."""
    pending_trials: int
    """Trials that active jobs may still make."""
    today: DayOfUse
    """What was used today (UTC)."""
    days: list[DayOfUse]
    """The newest first; days without use are left out."""


class User(Wire):
    """Somebody who may sign in; ``role`` is what the user's tokens may do at most."""

    name: str
    """Name of the user."""
    role: Scope
    """The most that the user's tokens may do."""
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
    """The most that the user's tokens may do."""
    quota: Quota | None = None
    """The user's limits; None: those of the service for new users."""


class ChangeUser(Wire):
    """Body of ``PATCH /users/{name}``: what is given is changed. The tokens of a user who is disabled are revoked."""

    role: Scope | None = None
    """The new role; None: as it is."""
    quota: Quota | None = None
    """The new limits, all of them; None: as they are."""
    disabled: bool | None = None
    """Whether the user is disabled; None: as it is."""


class AuditEntry(Wire):
    """A change, or a refusal. ``action`` is the operation's name, ``object`` its path, ``status`` HTTP's."""

    at: datetime
    """When the request came."""
    user: str
    """Who sent it."""
    token_id: str
    """Id of the token that it was sent with."""
    action: str
    """Name of the operation, such as ``submit_job``."""
    object: str
    """Path of the request."""
    status: int
    """HTTP status of the answer."""
    address: str
    """Address that the request came from."""

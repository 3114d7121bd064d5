"""Values that repositories return about users: limits, use, tokens and audit entries. Times are UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from db.states import Scope
from loopwright.codegen.kinds import TokenKind


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits of a user; None: no limit. Those of a day are checked when a job is submitted, with all its trials.

    ``active_jobs`` are queued or running; ``daily_device_seconds`` are those in measuring slots.
    """

    active_jobs: int | None = None
    daily_trials: int | None = None
    daily_device_seconds: float | None = None
    daily_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DayView:
    """A user's use of the service on a day; ``day`` is as in 2030-01-31."""

    day: str
    jobs: int
    trials: int
    device_seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class UseView:
    """A user's present use. ``pending_trials`` are trials that active jobs may still run; ``days``: newest first."""

    active_jobs: int
    pending_trials: int
    today: DayView
    days: tuple[DayView, ...]


@dataclass(frozen=True, slots=True)
class UserView:
    """A user; ``role`` is the widest scope of the user's tokens."""

    name: str
    role: Scope
    quota: Quota
    created_at: datetime
    disabled_at: datetime | None


@dataclass(frozen=True, slots=True)
class TokenView:
    """A token without its secret, which is not stored."""

    id: str
    user_name: str
    kind: TokenKind
    name: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class BearerView:
    """The bearer of a token; ``scope`` is at most the user's role. ``ended``: the token has expired or was revoked."""

    user_name: str
    token_id: str
    kind: TokenKind
    scope: Scope
    expires_at: datetime | None
    ended: bool
    made_by: str | None = None
    ceiling: datetime | None = None

    @property
    def _stands_for_another(self) -> bool:
        return self.kind in (TokenKind.SESSION, TokenKind.CODE)

    @property
    def source_id(self) -> str | None:
        """The id of the bearer's token, or of the one behind a session or a code."""
        return self.made_by if self._stands_for_another else self.token_id

    @property
    def source_expires_at(self) -> datetime | None:
        """The end of that token, and so of what is made with it; None: it has none."""
        return self.ceiling if self._stands_for_another else self.expires_at


@dataclass(frozen=True, slots=True)
class AuditView:
    """A change or a refusal; ``status`` is HTTP's, ``action`` the name of the endpoint, ``object`` its path."""

    at: datetime
    user_name: str
    token_id: str
    action: str
    object: str
    status: int
    address: str

"""Who asks, and links for guests."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from loopwright.schemas.base import Wire

Right = Literal["read", "submit", "cancel", "import", "readmit", "invite"]


class Session(Wire):
    """Who the bearer of the token is, and what it may do."""

    role: Literal["owner", "guest"]
    rights: list[Right]
    expires_at: datetime | None
    """When a guest's link ends; the owner's token does not."""


class NewGuestLink(Wire):
    """Body of ``POST /guest-links``."""

    days: int = Field(default=7, ge=1, le=365)


class GuestLink(Wire):
    """A token that reads and changes nothing."""

    token: str
    path: str
    """Where the dashboard takes it, below the service's URL."""
    expires_at: datetime

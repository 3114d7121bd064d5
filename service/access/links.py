"""Guests' tokens: the time they end, signed with a key that follows from the owner's token.

Nothing is stored: another token for the service ends every link.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime

_PREFIX = "guest"


def sign(owner_token: str, expires_at: datetime) -> str:
    """A token that holds until `expires_at` (whole seconds)."""
    end = str(int(expires_at.timestamp()))
    return f"{_PREFIX}.{end}.{_signature(owner_token, end)}"


def read(owner_token: str, token: str) -> datetime | None:
    """When a guest's token ends, past or to come; None for anything that this service did not sign."""
    prefix, _, rest = token.partition(".")
    end, _, signature = rest.partition(".")
    if prefix != _PREFIX or not hmac.compare_digest(signature.encode(), _signature(owner_token, end).encode()):
        return None
    return datetime.fromtimestamp(int(end), UTC)


def _signature(owner_token: str, end: str) -> str:
    key = hashlib.sha256(f"guest links of {owner_token}".encode()).digest()
    return hmac.new(key, end.encode(), hashlib.sha256).hexdigest()

"""Signatures of webhooks, by the Standard Webhooks specification (https://www.standardwebhooks.com), version 1."""

from __future__ import annotations

import base64
import hmac
import secrets

_PREFIX = "whsec_"
_KEY_BYTES = 24
"""The specification asks for 24 to 64."""


def new_secret() -> str:
    """Return the secret of a new webhook."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def headers(secret: str, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers that a message is sent with; ``timestamp`` is in seconds since 1970.

    Raise ValueError for a secret that `new_secret` cannot have made.
    """
    key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    digest = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, "sha256")
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }

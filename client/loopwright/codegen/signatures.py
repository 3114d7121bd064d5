"""Signatures of certificates: canonical JSON, signed with Ed25519 (RFC 8032). Keys and signatures are base64."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


def canonical(value: Any) -> str:
    """Return JSON in ASCII with sorted keys and no spaces: equal values have equal texts.

    Raises ValueError for NaN and infinities, which JSON does not have.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def trace_digest(trace: Any) -> str | None:
    """Return the SHA-256 (hexadecimal) of a trace ``[instructions, decisions]``; None for the baseline's, None."""
    return None if trace is None else hashlib.sha256(canonical(trace).encode()).hexdigest()


def key_id(public_key: str) -> str:
    """Return the name of a key: the first 16 hexadecimal digits of the SHA-256 of its 32 bytes.

    Raises ValueError if it is not base64.
    """
    return hashlib.sha256(_bytes(public_key)).hexdigest()[:16]


def new_private_key() -> str:
    """Return a new private key."""
    return _text(Ed25519PrivateKey.generate().private_bytes_raw())


def public_key(private_key: str) -> str:
    """Return the public key of a private one."""
    return _text(Ed25519PrivateKey.from_private_bytes(_bytes(private_key)).public_key().public_bytes_raw())


def sign(private_key: str, document: str) -> str:
    """Return the signature of a document."""
    return _text(Ed25519PrivateKey.from_private_bytes(_bytes(private_key)).sign(document.encode()))


def is_signed(document: str, signature: str, public_key: str) -> bool:
    """Return whether the signature is that of the document by the key; False for what is no signature or no key."""
    try:
        Ed25519PublicKey.from_public_bytes(_bytes(public_key)).verify(_bytes(signature), document.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from None

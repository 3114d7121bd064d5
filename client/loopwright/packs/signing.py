"""Keys with which packs are signed: Ed25519, as certificates are, in a file of their creator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from loopwright import schemas
from loopwright.codegen import signatures
from loopwright.errors import first_line
from loopwright.results import evidence

Keys = Mapping[str, schemas.SigningKey]
"""Public keys by their ids."""
_LIST = TypeAdapter(list[schemas.SigningKey])


class PackKey(BaseModel):
    """A private key (base64 of 32 bytes). Whoever has it can sign packs as its owner."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    private_key: str
    created_at: datetime

    @property
    def public(self) -> schemas.SigningKey:
        """The key without its private part."""
        public_key = signatures.public_key(self.private_key)
        return schemas.SigningKey(
            id=signatures.key_id(public_key), public_key=public_key, created_at=self.created_at, retired_at=None
        )


class PackSignature(BaseModel):
    """The signature of a manifest, and the key that claims it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key_id: str
    public_key: str
    signature: str


def new_key(path: Path) -> PackKey:
    """Write a new key to a file that only its owner may read. Raise FileExistsError if the file exists."""
    key = PackKey(private_key=signatures.new_private_key(), created_at=datetime.now(UTC))
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(f"{key.model_dump_json()}\n")
    return key


def read_key(path: Path) -> PackKey:
    """Return the key in a file. Raise ValueError for a file that `new_key` did not write."""
    try:
        key = PackKey.model_validate_json(path.read_bytes())
        key.public  # noqa: B018  (of a wrong length, it has none)
    except ValueError:  # its text is left out: it may be a key all the same
        raise ValueError(f"{path} is no key to sign packs with; make one with 'loopwright key new FILE'") from None
    return key


def sign(manifest: str, key: PackKey) -> PackSignature:
    """Return the signature of a manifest's text."""
    public = key.public
    return PackSignature(
        key_id=public.id, public_key=public.public_key, signature=signatures.sign(key.private_key, manifest)
    )


def revoke(path: Path, key_id: str) -> schemas.SigningKey:
    """Mark a key as revoked in a file of public keys, and return the key. Raise ValueError if it is not there."""
    keys = evidence.read_keys(path)
    if key_id not in keys:
        raise ValueError(f"{path} has no key {key_id}; it has {', '.join(keys) or 'none'}")
    revoked = keys[key_id].model_copy(update={"revoked_at": keys[key_id].revoked_at or datetime.now(UTC)})
    path.write_bytes(_LIST.dump_json(list({**keys, key_id: revoked}.values()), indent=2))
    return revoked


def signature_of(data: bytes) -> PackSignature:
    """Return the signature in a pack. Raise ValueError for bytes that are none."""
    try:
        return PackSignature.model_validate_json(data)
    except ValidationError as error:
        raise ValueError(f"it has no signature that this version can read ({first_line(error)})") from None

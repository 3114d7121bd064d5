"""The certificates that travel with exported records: JSON beside TVM's pair, a line a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from db.exchange.json_pair import CERTIFICATES
from db.inputs import ImportedCertificate
from db.results.signing_keys import SigningKeyView
from db.views import SignedDocument
from loopwright import schemas
from loopwright.codegen import signatures
from loopwright.codegen.kinds import SignedBy
from loopwright.errors import first_line

Keys = Mapping[str, SigningKeyView]
"""The keys of this service by their ids."""
_MOST_BYTES = 2**18
"""Of a line: a document has some 10 kB."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A certificate with what it is about, and whose key has signed it."""

    certificate: ImportedCertificate
    workload_hash: str
    trace_sha256: str | None
    target: str
    signed_by: SignedBy


def line(signed: SignedDocument | None, keys: Keys) -> str:
    """Return the line of a record's certificate; empty for a record without one."""
    if signed is None:
        return "\n"
    carried = schemas.CarriedCertificate(
        document=signed.document,
        key_id=signed.key_id,
        signature=signed.signature,
        public_key=keys[signed.key_id].public_key,
    )
    return f"{carried.model_dump_json()}\n"


def read(lines: Sequence[str], keys: Keys) -> tuple[list[Carried], list[str]]:
    """Return the certificates whose signatures hold, and an error for each other line that is not empty."""
    found, errors = [], []
    for number, text in enumerate(lines, 1):
        if text.strip():
            try:
                found.append(_read(text, keys))
            except ValueError as error:
                errors.append(f"{CERTIFICATES} line {number}: {error}")
    return found, errors


def _read(text: str, keys: Keys) -> Carried:
    if len(text) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES} characters")
    try:
        carried = schemas.CarriedCertificate.model_validate_json(text)
        evidence = schemas.Evidence.model_validate_json(carried.document)
        target = signatures.canonical(evidence.target)
    except (ValidationError, ValueError) as error:
        raise ValueError(f"it is no certificate that this version can read ({first_line(error)})") from None
    if signatures.key_id(carried.public_key) != carried.key_id:
        raise ValueError(f"its key has another id than {carried.key_id:.16}")
    if not signatures.is_signed(carried.document, carried.signature, carried.public_key):
        raise ValueError(f"its signature is not that of its key {carried.key_id}")
    key = keys.get(carried.key_id)
    if key is not None and key.revoked_at is not None:
        raise ValueError(f"its key {key.id} was revoked at {key.revoked_at}, so anybody may have signed it")
    if key is not None and key.retired_at is not None and evidence.created_at > key.retired_at:
        raise ValueError(f"it was issued after its key {key.id} was retired")
    return Carried(
        ImportedCertificate(carried.document, carried.public_key, carried.signature),
        evidence.workload_hash,
        evidence.trace_sha256,
        target,
        SignedBy.OTHER if key is None else SignedBy.SERVICE,
    )

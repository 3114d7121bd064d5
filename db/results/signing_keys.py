"""The keys with which certificates are signed.

The private key of the current one is stored in plain text, as signing needs it. A key that is retired loses its private
part and stays published, so that what it signed can be verified. A key that is revoked is published as such, and
nothing that it signed is believed: whoever has its private part can sign anything, under any date. What the database
has by then, the current key signs again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.errors import NotFound
from db.models import Base, Certificate, Recheck, SigningKey
from loopwright.codegen import signatures


@dataclass(frozen=True, slots=True)
class SigningKeyView:
    """A key without its private part; ``public_key`` is base64 of 32 bytes, ``retired_at`` None while it signs.

    ``revoked_at`` is None unless its private part may be known to others.
    """

    id: str
    public_key: str
    created_at: datetime
    retired_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class Revocation:
    """``key`` was revoked. The new one signed ``signed`` documents again, and left ``left`` alone: they had changed."""

    key: SigningKeyView
    signer: str
    signed: int
    left: int


@dataclass(frozen=True, slots=True)
class Signer:
    """The current key with its private part."""

    id: str
    private_key: str

    def sign(self, document: str) -> str:
        """Return the signature of a document, in base64."""
        return signatures.sign(self.private_key, document)


def current_signer(session: Session, now: datetime) -> Signer:
    """Return the key that signs, which this transaction makes if there is none. It is not retired before its end."""
    key = session.scalars(_current().limit(1).with_for_update(read=True)).first() or _new(session, now)
    assert key.private_key is not None, "a key that is not retired has its private part"
    return Signer(key.id, key.private_key)


@dataclass(frozen=True, slots=True)
class _Signature:
    """The columns of a table with a document, the id of its key, and its signature."""

    table: type[Base]
    document: InstrumentedAttribute[Any]
    key_id: InstrumentedAttribute[Any]
    signature: InstrumentedAttribute[Any]

    def sign_again(self, row: Base, public_key: str, signer: SigningKey) -> bool:
        """Sign a row's document, if the key before has signed it; return whether it has."""
        document, private_key = getattr(row, self.document.key), signer.private_key
        assert private_key is not None, "the current key has its private part"
        if not signatures.is_signed(document, getattr(row, self.signature.key), public_key):
            return False
        setattr(row, self.key_id.key, signer.id)
        setattr(row, self.signature.key, signatures.sign(private_key, document))
        return True


_SIGNATURES = (
    _Signature(Certificate, Certificate.document, Certificate.key_id, Certificate.signature),
    _Signature(Certificate, Certificate.verdict_document, Certificate.verdict_key_id, Certificate.verdict_signature),
    _Signature(Recheck, Recheck.document, Recheck.key_id, Recheck.signature),
)


def _current() -> Select[SigningKey]:
    wanted = select(SigningKey).where(SigningKey.retired_at.is_(None))
    return wanted.order_by(SigningKey.created_at.desc(), SigningKey.id)


def _rotate(session: Session, now: datetime) -> SigningKey:
    for key in session.scalars(_current().with_for_update()).all():
        key.private_key, key.retired_at = None, now
    return _new(session, now)


def _new(session: Session, now: datetime) -> SigningKey:
    private_key = signatures.new_private_key()
    public_key = signatures.public_key(private_key)
    key = SigningKey(
        id=signatures.key_id(public_key),
        public_key=public_key,
        private_key=private_key,
        created_at=now,
        retired_at=None,
        revoked_at=None,
    )
    session.add(key)
    return key


class SigningKeys:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @retry_conflicts
    def ensure(self) -> None:
        """Make the first key, unless there is one."""
        with self._sessions.read() as session:
            if session.scalars(_current().limit(1)).first() is not None:
                return
        with self._sessions.write() as session:
            current_signer(session, self._sessions.now())

    @retry_conflicts
    def rotate(self) -> SigningKeyView:
        """Retire the current key, and return the new one."""
        with self._sessions.write() as session:
            return _view(_rotate(session, self._sessions.now()))

    @retry_conflicts
    def revoke(self, key_id: str) -> Revocation:
        """Revoke a key whose private part may be known to others, and sign what it signed with the current key.

        If it is the current one, it is retired first. Only documents of the database that have its signature are signed
        again. Raises NotFound for an unknown key.
        """
        with self._sessions.write() as session:
            current = session.scalars(_current().with_for_update()).all()
            key = session.get(SigningKey, key_id)
            if key is None:
                raise NotFound("signing key", key_id)
            now = self._sessions.now()
            signer = _rotate(session, now) if key in current else (current[0] if current else _new(session, now))
            key.revoked_at = key.revoked_at or now
            session.flush()
            signed = left = 0
            for signature in _SIGNATURES:
                for row in session.scalars(select(signature.table).where(signature.key_id == key_id)):
                    again = signature.sign_again(row, key.public_key, signer)
                    signed, left = signed + again, left + (not again)
            return Revocation(_view(key), signer.id, signed, left)

    def published(self) -> list[SigningKeyView]:
        """Return all keys, the newest first."""
        with self._sessions.read() as session:
            rows = session.scalars(select(SigningKey).order_by(SigningKey.created_at.desc(), SigningKey.id))
            return [_view(row) for row in rows]


def _view(row: SigningKey) -> SigningKeyView:
    return SigningKeyView(row.id, row.public_key, row.created_at, row.retired_at, row.revoked_at)

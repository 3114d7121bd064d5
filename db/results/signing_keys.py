"""The keys with which certificates are signed.

The private key of the current one is stored in plain text, as signing needs it. A key that is retired loses its private
part and stays published, so that what it signed can be verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from db.engine.connections import Sessions
from db.models import SigningKey
from loopwright.codegen import signatures


@dataclass(frozen=True, slots=True)
class SigningKeyView:
    """A key without its private part; ``public_key`` is base64 of 32 bytes, ``retired_at`` None while it signs."""

    id: str
    public_key: str
    created_at: datetime
    retired_at: datetime | None


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


def _current() -> Select[SigningKey]:
    wanted = select(SigningKey).where(SigningKey.retired_at.is_(None))
    return wanted.order_by(SigningKey.created_at.desc(), SigningKey.id)


def _new(session: Session, now: datetime) -> SigningKey:
    private_key = signatures.new_private_key()
    public_key = signatures.public_key(private_key)
    key = SigningKey(
        id=signatures.key_id(public_key),
        public_key=public_key,
        private_key=private_key,
        created_at=now,
        retired_at=None,
    )
    session.add(key)
    return key


class SigningKeys:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def ensure(self) -> None:
        """Make the first key, unless there is one."""
        with self._sessions.read() as session:
            if session.scalars(_current().limit(1)).first() is not None:
                return
        with self._sessions.write() as session:
            current_signer(session, self._sessions.now())

    def rotate(self) -> SigningKeyView:
        """Retire the current key, and return the new one."""
        with self._sessions.write() as session:
            old = session.scalars(_current().with_for_update()).all()
            now = self._sessions.now()
            for key in old:
                key.private_key, key.retired_at = None, now
            return _view(_new(session, now))

    def published(self) -> list[SigningKeyView]:
        """Return all keys, the newest first."""
        with self._sessions.read() as session:
            rows = session.scalars(select(SigningKey).order_by(SigningKey.created_at.desc(), SigningKey.id))
            return [_view(row) for row in rows]


def _view(row: SigningKey) -> SigningKeyView:
    return SigningKeyView(row.id, row.public_key, row.created_at, row.retired_at)

"""Tokens: secrets that are shown once and stored as digests, with scope, expiry and time of revocation."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, or_, select, update

from db.access.views import BearerView, TokenView
from db.engine.changes import Topic
from db.engine.columns import new_id
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.engine.paging import Keyset, Page
from db.errors import InvalidTransition, NotFound
from db.models import OWNER, Token, User
from db.states import Scope
from loopwright.codegen.kinds import TokenKind

_NEWEST = Keyset("tokens", Token.created_at, Token.id, descending=True)
_KEPT_DAYS = 30
"""After so many days sessions and codes that have ended are forgotten."""
_USED_EVERY = timedelta(minutes=10)


def secret_digest(secret: str) -> str:
    """Return what is stored of a secret. Secrets have 256 random bits, so that a plain hash cannot be reversed by
    guessing."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _view(row: Token) -> TokenView:
    return TokenView(
        id=row.id,
        user_name=row.user_name,
        kind=row.kind,
        name=row.name,
        scope=row.scope,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        used_at=row.used_at,
    )


class Tokens:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @retry_conflicts
    def create(
        self,
        user_name: str,
        kind: TokenKind,
        name: str,
        scope: Scope,
        lifetime: timedelta | None,
        maker: BearerView | None = None,
    ) -> tuple[TokenView, str]:
        """Return a new token and its secret, which is not stored. ``lifetime`` None: valid until revoked.

        It ends with the token of its ``maker`` at the latest. A session and a code stand for the token behind them.
        """
        secret = f"lw_{secrets.token_urlsafe(32)}"
        with self._sessions.write() as session:
            now = self._sessions.now()
            ceiling = None if maker is None else maker.source_expires_at
            ends = [each for each in (None if lifetime is None else now + lifetime, ceiling) if each is not None]
            row = Token(
                id=new_id(),
                user_name=user_name,
                kind=kind,
                name=name,
                scope=scope,
                digest=secret_digest(secret),
                created_at=now,
                expires_at=min(ends, default=None),
                made_by=None if maker is None else maker.source_id,
                ceiling=ceiling,
            )
            session.add(row)
            long_over = and_(
                Token.kind.in_((TokenKind.SESSION, TokenKind.CODE)), Token.expires_at < now - timedelta(days=_KEPT_DAYS)
            )
            session.execute(delete(Token).where(long_over))
            session.flush()
            return _view(row), secret

    @retry_conflicts
    def put_owner(self, secret: str, name: str) -> None:
        """Let a secret be the owner's token for ``name`` (a service's data directory), in place of an earlier one."""
        digest, now = secret_digest(secret), self._sessions.now()
        mine = Token.kind == TokenKind.OWNER, Token.name == name, Token.revoked_at.is_(None)
        with self._sessions.write() as session:
            session.execute(update(Token).where(*mine, Token.digest != digest).values(revoked_at=now))
            row = session.scalar(select(Token).where(Token.digest == digest).with_for_update())
            if row is None:
                row = Token(id=new_id(), user_name=OWNER, kind=TokenKind.OWNER, digest=digest, created_at=now)
                session.add(row)
            row.name, row.scope, row.revoked_at = name, Scope.ADMIN, None

    @retry_conflicts
    def bearer(self, secret: str) -> BearerView | None:
        """Return the bearer of a secret; None if it is unknown. The token may have ended: see `BearerView.ended`."""
        wanted = select(Token, User).join(User).where(Token.digest == secret_digest(secret))
        now = self._sessions.now()
        with self._sessions.read() as session:
            found = session.execute(wanted).one_or_none()
        if found is None:
            return None
        row, user = found
        ended = row.revoked_at is not None or user.disabled_at is not None or _is_over(row.expires_at, now)
        if not ended and (row.used_at is None or now - row.used_at > _USED_EVERY):
            with self._sessions.write(Topic.NONE) as session:
                session.execute(update(Token).where(Token.id == row.id).values(used_at=now))
        scope = row.scope if user.role.includes(row.scope) else user.role
        return BearerView(user.name, row.id, row.kind, scope, row.expires_at, ended, row.made_by, row.ceiling)

    def redeem(self, code: str) -> BearerView | None:
        """Return the bearer of a code, and end the code. None if it is not a valid code."""
        now = self._sessions.now()
        spent = (
            update(Token)
            .where(Token.digest == secret_digest(code), Token.kind == TokenKind.CODE, _alive(now))
            .values(revoked_at=now, used_at=now)
        )
        with self._sessions.write() as session:
            if session.connection().execute(spent).rowcount != 1:
                return None
        return self.bearer(code)

    def page(self, user_name: str | None, page_size: int = 50, page_token: str | None = None) -> Page[TokenView]:
        """Return a user's tokens, or those of all, the newest first, without codes. Raise `InvalidPage`."""
        wanted = select(Token).where(Token.kind != TokenKind.CODE)
        if user_name is not None:
            wanted = wanted.where(Token.user_name == user_name)
        with self._sessions.read() as session:
            return _NEWEST.page(session, wanted, _view, page_size, page_token)

    @retry_conflicts
    def revoke(self, token_id: str, user_name: str | None = None) -> TokenView:
        """Revoke a token of a user, or of any user, with the sessions and codes that stand for it.

        Raise `NotFound`, and `InvalidTransition` for the owner's token.
        """
        wanted: ColumnElement[bool] = Token.id == token_id
        if user_name is not None:
            wanted = and_(wanted, Token.user_name == user_name)
        with self._sessions.write() as session:
            row = session.scalar(select(Token).where(wanted).with_for_update())
            if row is None:
                raise NotFound("token", token_id)
            if row.kind is TokenKind.OWNER:
                raise InvalidTransition(
                    "this is the token in the data directory of a service; delete its file 'token' and restart the "
                    "service to replace it"
                )
            now = self._sessions.now()
            row.revoked_at = row.revoked_at or now
            stand_for_it = Token.made_by == row.id, Token.kind.in_((TokenKind.SESSION, TokenKind.CODE))
            session.execute(update(Token).where(*stand_for_it, Token.revoked_at.is_(None)).values(revoked_at=now))
            session.flush()
            return _view(row)


def _is_over(expires_at: datetime | None, now: datetime) -> bool:
    return expires_at is not None and expires_at <= now


def _alive(now: datetime) -> ColumnElement[bool]:
    return and_(Token.revoked_at.is_(None), or_(Token.expires_at.is_(None), Token.expires_at > now))

"""Users, with their roles and limits."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError

from db.access.views import Quota, UserView
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.errors import InvalidTransition, NameTaken, NotFound
from db.models import OWNER, Token, User
from db.states import Scope


def user_view(row: User) -> UserView:
    return UserView(row.name, row.role, quota(row), row.created_at, row.disabled_at)


def quota(row: User) -> Quota:
    return Quota(row.active_jobs, row.daily_trials, row.daily_device_seconds, row.daily_bytes)


class Users:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @retry_conflicts
    def create(self, name: str, role: Scope, quota: Quota) -> UserView:
        """Raises `NameTaken`."""
        row = User(name=name, role=role, created_at=self._sessions.now(), **asdict(quota))
        try:
            with self._sessions.write() as session:
                session.add(row)
        except IntegrityError as error:
            raise NameTaken(f"a user {name!r} exists already; choose another name") from error
        return user_view(row)

    def all(self) -> list[UserView]:
        """All users, by name."""
        with self._sessions.read() as session:
            return [user_view(row) for row in session.scalars(select(User).order_by(User.name))]

    def get(self, name: str) -> UserView:
        """Raises `NotFound`."""
        with self._sessions.read() as session:
            row = session.scalar(select(User).where(User.name == name))
        if row is None:
            raise NotFound("user", name)
        return user_view(row)

    @retry_conflicts
    def change(
        self, name: str, *, role: Scope | None = None, quota: Quota | None = None, disabled: bool | None = None
    ) -> UserView:
        """Change what is not None. The tokens of a user who is disabled are revoked.

        Raises `NotFound`, and `InvalidTransition` for the owner, who stays an admin and enabled.
        """
        now = self._sessions.now()
        with self._sessions.write() as session:
            row = session.scalar(select(User).where(User.name == name).with_for_update())
            if row is None:
                raise NotFound("user", name)
            if row.name == OWNER and (disabled or role not in (None, Scope.ADMIN)):
                raise InvalidTransition("the owner of the service must stay an admin")
            if role is not None:
                row.role = role
            if quota is not None:
                for field, value in asdict(quota).items():
                    setattr(row, field, value)
            if disabled is not None:
                row.disabled_at = (row.disabled_at or now) if disabled else None
            if disabled:
                held = update(Token).where(Token.user_name == name, Token.revoked_at.is_(None))
                session.execute(held.values(revoked_at=now))
            session.flush()
            return user_view(row)

    def several(self) -> bool:
        """Return whether any user besides the owner can sign in."""
        others = select(func.count()).select_from(User).where(User.name != OWNER, User.disabled_at.is_(None))
        with self._sessions.read() as session:
            return bool(session.scalar(others))

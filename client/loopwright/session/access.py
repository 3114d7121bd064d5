"""Users, tokens, and what is used: a part of `loopwright.Client`."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from loopwright import schemas
from loopwright.session.transport import Transport, body, parse

_API = "/api/v1"
_PAGE_SIZE = 200


class Access:
    """Who may do what. Calls about other users and about the audit log raise Unauthorized unless an admin asks."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def me(self) -> schemas.Me:
        """Return who the token of this client is, and what it may do."""
        return self._transport.get(schemas.Me, f"{_API}/me")

    def login_url(self, page: str = "/") -> str:
        """Return an address that signs one browser in, once within 12 hours, as whoever this client is.

        Args:
            page: the path of the page that the browser then shows.
        """
        made = parse(schemas.LoginCode, self._transport.request("POST", f"{_API}/login-codes"))
        return f"{self._transport.endpoint.url}{page}{made.path.removeprefix('/')}"

    def tokens(self, everybodys: bool = False) -> Iterator[schemas.Token]:
        """Yield tokens, sessions and guest links, the newest first.

        Args:
            everybodys: those of all users (for admins), instead of one's own.
        """
        return self._transport.pages(schemas.Token, f"{_API}/tokens", all=everybodys, page_size=_PAGE_SIZE)

    def create_token(
        self, name: str, *, scope: schemas.Scope = "submit", days: int | None = None, user: str | None = None
    ) -> schemas.TokenMade:
        """Create a token. Its secret is in this answer only.

        Args:
            name: what to call it in the list.
            scope: the most that it may do: ``"read"``, ``"submit"`` or ``"admin"``.
            days: days for which it is valid; None: until it is revoked.
            user: for whom (for admins); None: for oneself.
        """
        made = body(schemas.NewToken, name=name, scope=scope, days=days, user=user)
        return parse(schemas.TokenMade, self._transport.request("POST", f"{_API}/tokens", json=made))

    def revoke_token(self, token_id: str) -> schemas.Token:
        """Revoke a token, a session or a guest link.

        Args:
            token_id: ``Token.id``.

        Raises:
            NotFound: there is no such token.
            Conflict: it is the owner's token, which its file in the data directory replaces.
        """
        answer = self._transport.request("DELETE", f"{_API}/tokens/{quote(token_id, safe='')}", repeatable=True)
        return parse(schemas.Token, answer)

    def users(self) -> Iterator[schemas.User]:
        """Yield all users, by name."""
        return self._transport.pages(schemas.User, f"{_API}/users")

    def create_user(
        self, name: str, *, role: schemas.Scope = "submit", quota: schemas.Quota | None = None
    ) -> schemas.User:
        """Create a user, without a token yet: see `create_token`.

        Args:
            name: lower-case letters, digits, dots, underscores and hyphens.
            role: the most that the user's tokens may do.
            quota: limits; None: the service's limits for new users.

        Raises:
            Conflict: there is a user of this name, or the machine has no sandbox.
        """
        made = body(schemas.NewUser, name=name, role=role, quota=quota)
        return parse(schemas.User, self._transport.request("POST", f"{_API}/users", json=made))

    def change_user(
        self,
        name: str,
        *,
        role: schemas.Scope | None = None,
        quota: schemas.Quota | None = None,
        disabled: bool | None = None,
    ) -> schemas.User:
        """Change what is given of a user.

        Args:
            name: name of the user.
            role: the most that the user's tokens may do.
            quota: the new limits, all of them.
            disabled: True revokes the user's tokens.

        Raises:
            NotFound: there is no such user.
        """
        changes = body(schemas.ChangeUser, role=role, quota=quota, disabled=disabled)
        path = f"{_API}/users/{quote(name, safe='')}"
        answer = self._transport.request("PATCH", path, json=changes, repeatable=True)
        return parse(schemas.User, answer)

    def use(self, user: str | None = None) -> schemas.Use:
        """Return what a user uses, beside the limits.

        Args:
            user: name of a user (for admins); None: oneself.
        """
        path = "/use" if user is None else f"/users/{quote(user, safe='')}/use"
        return self._transport.get(schemas.Use, f"{_API}{path}")

    def audit(self) -> Iterator[schemas.AuditEntry]:
        """Yield what was changed at whose request, and what was refused, the newest first."""
        return self._transport.pages(schemas.AuditEntry, f"{_API}/audit", page_size=_PAGE_SIZE)

"""Users, tokens, and what is used: a part of `loopwright.Client`."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from loopwright import schemas
from loopwright.transport import Transport, body, parse

_API = "/api/v1"
_PAGE_SIZE = 200


class Access:
    """Who may do what. Calls about other users and about the audit log raise Unauthorized unless an admin asks."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def me(self) -> schemas.Me:
        """Who the token of this client is, and what it may do."""
        return self._transport.get(schemas.Me, f"{_API}/me")

    def login_url(self) -> str:
        """An address that signs one browser in, once, as whoever this client is."""
        made = parse(schemas.LoginCode, self._transport.request("POST", f"{_API}/login-codes"))
        return f"{self._transport.endpoint.url}{made.path}"

    def tokens(self, everybodys: bool = False) -> Iterator[schemas.Token]:
        """One's tokens, sessions and guests' links, the newest first, or those of all users."""
        return self._transport.pages(schemas.Token, f"{_API}/tokens", all=everybodys, page_size=_PAGE_SIZE)

    def create_token(
        self, name: str, *, scope: schemas.Scope = "submit", days: int | None = None, user: str | None = None
    ) -> schemas.TokenMade:
        """A new token for oneself, or for another user; its secret is shown this once. ``days`` None: no end."""
        made = body(schemas.NewToken, name=name, scope=scope, days=days, user=user)
        return parse(schemas.TokenMade, self._transport.request("POST", f"{_API}/tokens", json=made))

    def revoke_token(self, token_id: str) -> schemas.Token:
        """End a token, a session or a guest's link."""
        answer = self._transport.request("DELETE", f"{_API}/tokens/{quote(token_id, safe='')}", repeatable=True)
        return parse(schemas.Token, answer)

    def users(self) -> Iterator[schemas.User]:
        """All users, by name."""
        return self._transport.pages(schemas.User, f"{_API}/users")

    def create_user(
        self, name: str, *, role: schemas.Scope = "submit", quota: schemas.Quota | None = None
    ) -> schemas.User:
        """A new user, without a token yet: see `create_token`. ``quota`` None: the service's limits for new users."""
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
        """Change what is given. Disabling a user revokes the user's tokens."""
        changes = body(schemas.ChangeUser, role=role, quota=quota, disabled=disabled)
        path = f"{_API}/users/{quote(name, safe='')}"
        answer = self._transport.request("PATCH", path, json=changes, repeatable=True)
        return parse(schemas.User, answer)

    def use(self, user: str | None = None) -> schemas.Use:
        """What one uses, or another user, beside the limits."""
        path = "/use" if user is None else f"/users/{quote(user, safe='')}/use"
        return self._transport.get(schemas.Use, f"{_API}{path}")

    def audit(self) -> Iterator[schemas.AuditEntry]:
        """What was changed at whose request, and what was refused, the newest first."""
        return self._transport.pages(schemas.AuditEntry, f"{_API}/audit", page_size=_PAGE_SIZE)

"""``/tokens`` and ``/guest-links``: a user's own tokens, and for admins the tokens of all users."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query

from db.access.views import TokenView
from db.states import Scope
from loopwright import schemas
from loopwright.codegen.kinds import TokenKind
from service.bodies.route import ParsedRoute
from service.context import Ctx, Paging
from service.identity.rights import needs
from service.identity.visitor import Asking, Visitor
from service.problems import BODY, CONFLICTS, ProblemError

router = APIRouter(tags=["access"], route_class=ParsedRoute)


@router.get("/tokens")
@needs("submit")
def list_tokens(
    ctx: Ctx,
    visitor: Asking,
    paging: Paging,
    all: Annotated[bool, Query(description="Those of all users; for admins")] = False,
) -> schemas.Page[schemas.Token]:
    """List tokens, sessions and guest links, the newest first, including those that have expired or were revoked."""
    if all:
        _require_admin(visitor)
    page = ctx.database.tokens.page(None if all else visitor.user, paging.size, paging.token)
    return schemas.Page(items=[_token(view) for view in page.items], next_page_token=page.next_page_token)


@router.post("/tokens", status_code=201, responses=BODY)
@needs("submit")
def make_token(ctx: Ctx, visitor: Asking, body: schemas.NewToken) -> schemas.TokenMade:
    """Create a token for oneself, or, as an admin, for any user. Its scope is at most that of the caller's token."""
    scope, user = Scope(body.scope), body.user or visitor.user
    if user != visitor.user:
        _require_admin(visitor)
        ctx.database.users.get(user)
    if not visitor.bearer.scope.includes(scope):
        raise ProblemError(
            403,
            "not-allowed",
            f"A token of scope {visitor.bearer.scope} cannot create a token of scope {scope}. Ask an admin.",
        )
    lifetime = None if body.days is None else timedelta(days=body.days)
    made, secret = ctx.database.tokens.create(user, TokenKind.TOKEN, body.name, scope, lifetime, visitor.bearer)
    return schemas.TokenMade(token=_token(made), secret=secret)


@router.delete("/tokens/{token_id}", responses=CONFLICTS)
@needs("submit")
def revoke_token(ctx: Ctx, visitor: Asking, token_id: str) -> schemas.Token:
    """Revoke a token, a session or a guest link. Other processes of the service may accept it for up to 5 s more."""
    is_admin = visitor.bearer.scope is Scope.ADMIN
    revoked = ctx.database.tokens.revoke(token_id, None if is_admin else visitor.user)
    ctx.identities.forget()
    return _token(revoked)


@router.post("/guest-links", status_code=201, responses=BODY)
@needs("invite")
def make_guest_link(ctx: Ctx, visitor: Asking, body: schemas.NewGuestLink) -> schemas.GuestLink:
    """Create a link for guests, who may read everything that is not private, and change nothing."""
    made, secret = ctx.database.tokens.create(
        visitor.user, TokenKind.GUEST, "a link for guests", Scope.READ, timedelta(days=body.days), visitor.bearer
    )
    assert made.expires_at is not None, "links expire"
    return schemas.GuestLink(id=made.id, token=secret, path=f"/#guest={secret}", expires_at=made.expires_at)


def _token(view: TokenView) -> schemas.Token:
    return schemas.Token(
        id=view.id,
        user=view.user_name,
        kind=view.kind,
        name=view.name,
        scope=view.scope.value,
        created_at=view.created_at,
        expires_at=view.expires_at,
        revoked_at=view.revoked_at,
        used_at=view.used_at,
    )


def _require_admin(visitor: Visitor) -> None:
    if "administer" not in visitor.rights:
        raise ProblemError(403, "not-allowed", "Only admins can list and create the tokens of other users.")

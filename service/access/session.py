"""``/me``, ``/session`` and ``/login-codes``: the identity of the caller, and signing browsers in and out."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter, Request, Response

from loopwright import schemas
from loopwright.codegen.kinds import TokenKind
from service.context import Ctx
from service.identity import credentials
from service.identity.rights import needs
from service.identity.visitor import Asking, Visitor

SESSION_LIFETIME = timedelta(days=14)
CODE_LIFETIME = timedelta(hours=12)

router = APIRouter(tags=["access"])


@router.get("/me")
def get_me(visitor: Asking) -> schemas.Me:
    """Return the user of the token, and the token's rights."""
    return _me(visitor)


@router.post("/session")
@needs("read")
def sign_in(ctx: Ctx, visitor: Asking, request: Request, response: Response) -> schemas.Me:
    """Sign a browser in with a token or a code of ``POST /login-codes`` ('Authorization: Code …'), and set its cookie.

    The cookie is valid for two weeks, but not longer than the token. The cookie of a guest is the link's token.
    """
    secret, expires_at = visitor.secret, visitor.bearer.expires_at
    if not visitor.is_guest:
        made, secret = ctx.database.tokens.create(
            visitor.user, TokenKind.SESSION, _browser(request), visitor.bearer.scope, SESSION_LIFETIME, visitor.bearer
        )
        expires_at = made.expires_at
    assert expires_at is not None, "sessions and guests' links expire"
    secure = request.url.scheme == "https"
    credentials.set_cookie(response, request.headers, secret, expires_at, secure=secure)
    return _me(visitor)


@router.delete("/session", status_code=204)
@needs("read")
def sign_out(ctx: Ctx, visitor: Asking, request: Request, response: Response) -> None:
    """Sign the browser out and end its session."""
    if visitor.bearer.kind is TokenKind.SESSION:
        ctx.database.tokens.revoke(visitor.bearer.token_id)
        ctx.identities.forget()
    credentials.clear_cookie(response, request.headers)


@router.post("/login-codes", status_code=201)
@needs("submit")
def make_login_code(ctx: Ctx, visitor: Asking) -> schemas.LoginCode:
    """Create a code that signs in one browser, once, as the calling user."""
    made, secret = ctx.database.tokens.create(
        visitor.user, TokenKind.CODE, "", visitor.bearer.scope, CODE_LIFETIME, visitor.bearer
    )
    assert made.expires_at is not None, "codes expire"
    return schemas.LoginCode(code=secret, path=f"/#code={secret}", expires_at=made.expires_at)


def _me(visitor: Visitor) -> schemas.Me:
    bearer = visitor.bearer
    kind = TokenKind.SESSION if bearer.kind is TokenKind.CODE else bearer.kind
    return schemas.Me(
        user=bearer.user_name,
        kind=kind,
        scope=bearer.scope.value,
        rights=list(visitor.rights),
        expires_at=bearer.expires_at,
    )


def _browser(request: Request) -> str:
    """Return what a list of sessions tells them apart by."""
    return request.headers.get("user-agent", "").encode("ascii", "replace").decode()[:200] or "a browser"

"""``GET /session`` and ``POST /guest-links``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fastapi import APIRouter

from loopwright import schemas
from service.access import links
from service.access.authorised import Visitor
from service.context import Ctx
from service.problems import ProblemError

router = APIRouter(tags=["access"])


@router.get("/session")
def get_session(visitor: Visitor) -> schemas.Session:
    """Who the bearer of the token is, and what it may do."""
    return visitor


@router.post("/guest-links", status_code=201)
def make_guest_link(ctx: Ctx, body: schemas.NewGuestLink) -> schemas.GuestLink:
    """A link for guests, who may read and change nothing; 403 where the service's settings do not allow them."""
    if not ctx.settings.guests:
        raise ProblemError(
            403, "no-guests", "This service admits no guests; start it with LOOPWRIGHT_GUESTS=true to allow them."
        )
    expires_at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=body.days)
    token = links.sign(ctx.token, expires_at)
    return schemas.GuestLink(token=token, path=f"/?token={token}", expires_at=expires_at)

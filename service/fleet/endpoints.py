"""``GET /workers`` and ``GET /targets``."""

from __future__ import annotations

import json
from typing import TypeVar

from fastapi import APIRouter

from db import InvalidPage
from loopwright import schemas
from service.context import LIVE_SECONDS, Ctx, PageRequest, Paging
from service.fleet.offers import live_offers

router = APIRouter(tags=["fleet"])

Item = TypeVar("Item")


@router.get("/workers")
def list_workers(ctx: Ctx, paging: Paging) -> schemas.Page[schemas.Worker]:
    """Every machine that ever joined, and whether it is there now."""
    items = [
        schemas.Worker(
            id=worker.id,
            host=worker.host,
            device=worker.device,
            target=json.loads(worker.device_class.target_json),
            device_class=worker.device_class.id,
            threads=worker.device_class.threads,
            builders=worker.builders,
            alive=worker.alive,
            last_seen_at=worker.last_seen_at,
        )
        for worker in ctx.database.workers.all(LIVE_SECONDS)
    ]
    return _page(items, paging)


@router.get("/targets")
def list_targets(ctx: Ctx, paging: Paging) -> schemas.Page[schemas.TargetOffer]:
    """What live workers offer; the first is what ``auto`` takes."""
    items = [
        schemas.TargetOffer(
            target=json.loads(offer.device_class.target_json),
            device_class=offer.device_class.id,
            workers=offer.workers,
            is_auto=position == 0,
        )
        for position, offer in enumerate(live_offers(ctx))
    ]
    return _page(items, paging)


def _page(items: list[Item], paging: PageRequest) -> schemas.Page[Item]:
    """One page of a list that is at hand as a whole; the token is where the next one starts."""
    start = 0
    if paging.token is not None:
        if not paging.token.isdecimal():
            raise InvalidPage("this is not a token of this list")
        start = int(paging.token)
    end = start + paging.size
    return schemas.Page(items=items[start:end], next_page_token=str(end) if end < len(items) else None)

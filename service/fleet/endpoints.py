"""``GET /workers`` and ``GET /targets``."""

from __future__ import annotations

import json

from fastapi import APIRouter

from loopwright import schemas
from service.context import LIVE_SECONDS, Ctx
from service.fleet.offers import live_offers

router = APIRouter(tags=["fleet"])


@router.get("/workers")
def list_workers(ctx: Ctx) -> schemas.Page[schemas.Worker]:
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
    return schemas.Page(items=items, next_page_token=None)


@router.get("/targets")
def list_targets(ctx: Ctx) -> schemas.Page[schemas.TargetOffer]:
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
    return schemas.Page(items=items, next_page_token=None)

"""``/workers``, ``/device-classes``, ``/targets`` and ``/leases``."""

from __future__ import annotations

import json
from typing import TypeVar

from fastapi import APIRouter

from db import InvalidPage
from db.engine.changes import Topic
from loopwright import schemas
from service.api.answers import CLOCK_SECONDS, kept
from service.bodies.route import ParsedRoute
from service.context import LIVE_SECONDS, Context, Ctx, PageRequest, Paging
from service.fleet import wire
from service.fleet.offers import live_offers
from service.identity.rights import needs
from service.identity.visitor import Asking

router = APIRouter(tags=["fleet"], route_class=ParsedRoute)

Item = TypeVar("Item")


@router.get("/workers")
@kept(CLOCK_SECONDS, Topic.JOBS, Topic.WORKERS)
def list_workers(ctx: Ctx, paging: Paging) -> schemas.Page[schemas.Worker]:
    """List all workers that ever joined, and whether each is alive."""
    return _page([wire.worker(view) for view in ctx.database.workers.all(LIVE_SECONDS)], paging)


# A worker's id has a slash in it: host/device.
@router.post("/workers/{worker_id:path}/readmit")
@needs("readmit")
def readmit_worker(ctx: Ctx, worker_id: str) -> schemas.Worker:
    """End the quarantine of a worker, whatever its reason. Its drift is computed again from its next check on."""
    ctx.database.workers.readmit(worker_id)
    return _worker(ctx, worker_id)


@router.post("/workers/{worker_id:path}/drain")
@needs("administer")
def drain_worker(ctx: Ctx, worker_id: str) -> schemas.Worker:
    """Give a worker no new work. Its current work finishes; jobs continue on others of its device class, or wait."""
    ctx.database.workers.drain(worker_id, drained=True)
    return _worker(ctx, worker_id)


@router.post("/workers/{worker_id:path}/undrain")
@needs("administer")
def undrain_worker(ctx: Ctx, worker_id: str) -> schemas.Worker:
    """Give a drained worker work again."""
    ctx.database.workers.drain(worker_id, drained=False)
    return _worker(ctx, worker_id)


@router.get("/device-classes")
@kept(CLOCK_SECONDS, Topic.WORKERS)
def list_device_classes(ctx: Ctx, paging: Paging) -> schemas.Page[schemas.DeviceClass]:
    """List all device classes that ever had a worker, with their measured peaks."""
    return _page([wire.device_class(view) for view in ctx.database.devices.overview(LIVE_SECONDS)], paging)


@router.get("/leases")
@kept(CLOCK_SECONDS)
def list_leases(ctx: Ctx, visitor: Asking, paging: Paging) -> schemas.Page[schemas.Lease]:
    """List the leases of running jobs: the controller of each, and the end of the lease. Admins also see its host."""
    is_admin = "administer" in visitor.rights
    leases = [
        schemas.Lease(
            job_id=lease.job_id,
            job_name=lease.job_name,
            device_class=lease.device_class_id,
            owner=lease.owner if is_admin else None,
            expires_at=lease.expires_at,
            attempts=lease.attempts,
        )
        for lease in ctx.database.jobs.leases()
    ]
    return _page(leases, paging)


@router.get("/targets")
@kept(CLOCK_SECONDS, Topic.WORKERS)
def list_targets(ctx: Ctx, paging: Paging) -> schemas.Page[schemas.TargetOffer]:
    """List the targets of live workers. ``auto`` selects the first."""
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


def _worker(ctx: Context, worker_id: str) -> schemas.Worker:
    return next(wire.worker(view) for view in ctx.database.workers.all(LIVE_SECONDS) if view.id == worker_id)


_LONGEST_TOKEN = 9
"""Digits: no list has a milliard items."""


def _page(items: list[Item], paging: PageRequest) -> schemas.Page[Item]:
    """One page of a list that is at hand as a whole; the token is where the next one starts."""
    start = 0
    if paging.token is not None:
        if not paging.token.isdecimal() or len(paging.token) > _LONGEST_TOKEN:
            raise InvalidPage("this page_token does not belong to this list")
        start = int(paging.token)
    end = start + paging.size
    return schemas.Page(items=items[start:end], next_page_token=str(end) if end < len(items) else None)

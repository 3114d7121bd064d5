"""Health, readiness, version, metrics: outside /api, without a token."""

from __future__ import annotations

import importlib.metadata

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from loopwright import schemas
from loopwright.codegen.versions import TVM_VERSION
from service.context import Ctx
from service.fleet.offers import live_offers
from service.problems import ProblemError, file_response, responses

router = APIRouter(tags=["service"], responses=responses(421))


@router.get("/healthz")
async def health() -> dict[str, str]:
    """This process answers. It waits for none of the threads that answer other requests."""
    return {"status": "ok"}


@router.get("/readyz", responses=responses(503))
def ready(ctx: Ctx) -> dict[str, str]:
    """The database answers and a worker can measure; ``sandbox`` is the level of the walls around what users send."""
    ctx.database.ping()
    if not live_offers(ctx):
        raise ProblemError(503, "not-ready", "No worker has joined yet; this takes some seconds after the start.")
    return {"status": "ready", "sandbox": ctx.sandbox.level}


@router.get("/version")
def version() -> schemas.Version:
    return schemas.Version(loopwright=importlib.metadata.version("loopwright"), tvm=TVM_VERSION, api="v1")


@router.get("/metrics", response_class=Response, responses=file_response(CONTENT_TYPE_LATEST))
def metrics(ctx: Ctx) -> Response:
    """Counts for Prometheus, read from the database: they are the same from every API process."""
    registry = CollectorRegistry()
    jobs = Gauge("loopwright_jobs", "Jobs by state", ["state"], registry=registry)
    trials = Gauge("loopwright_trials", "Trials that ended, by outcome", ["outcome"], registry=registry)
    workers = Gauge("loopwright_workers", "Live workers by device class", ["device_class"], registry=registry)
    counts = ctx.database.counts()
    for state, count in counts.jobs.items():
        jobs.labels(state).set(count)
    for outcome, count in counts.trials.items():
        trials.labels(outcome).set(count)
    for offer in live_offers(ctx):
        workers.labels(offer.device_class.id).set(offer.workers)
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

"""Health, readiness, version, metrics: outside /api, without a token."""

from __future__ import annotations

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from loopwright import schemas
from loopwright.codegen.versions import TVM_VERSION
from loopwright.version import VERSION
from service.context import Ctx
from service.fleet.offers import live_offers
from service.metrics.exposition import exposition
from service.problems import ProblemError, file_response, responses

router = APIRouter(tags=["service"], responses=responses(421))


@router.get("/healthz")
async def health() -> dict[str, str]:
    """Report that this process answers. The request does not wait for the threads that answer other requests."""
    return {"status": "ok"}


@router.get("/readyz", responses=responses(503))
def ready(ctx: Ctx) -> dict[str, str]:
    """Report whether the database answers and a worker can measure. ``sandbox`` is the level of the sandbox."""
    ctx.database.ping()
    if not live_offers(ctx):
        ctx.database.require_room()
        detail = "No worker has joined yet. After a start this takes some seconds; later, see the controller's log."
        raise ProblemError(503, "not-ready", detail)
    return {"status": "ready", "sandbox": ctx.sandbox.level}


@router.get("/version")
def version() -> schemas.Version:
    """Return the versions of Loopwright, of TVM, and of the REST interface."""
    return schemas.Version(loopwright=VERSION, tvm=TVM_VERSION, api="v1")


@router.get("/metrics", response_class=Response, responses=file_response(CONTENT_TYPE_LATEST))
def metrics(ctx: Ctx) -> Response:
    """Return the metrics for Prometheus: those of the fleet, equal in all API processes, and those of this process."""
    return Response(exposition(ctx), media_type=CONTENT_TYPE_LATEST)

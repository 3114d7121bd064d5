"""The FastAPI application: routers, errors and limits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import CapacityLimiter
from fastapi import APIRouter, Depends, FastAPI

from db import Database
from service import meta, pages, problems
from service.ablations import endpoints as ablations
from service.access import session, tokens, users
from service.access.audit import AuditTrail
from service.access.headers import SafeHeaders
from service.access.known_host import KnownHost
from service.access.token_first import TokenFirst
from service.api import openapi
from service.api.feeds import Feeds
from service.api.patience import DEFAULT, RequestPatience
from service.api.request_metrics import API_PREFIX, CountedRequests, RequestMetrics
from service.api.sandbox import Sandbox
from service.api.shares import Shares
from service.bodies.shape import JsonLimits
from service.bodies.whole import WholeBody
from service.context import Context
from service.fleet import endpoints as fleet
from service.identity.rights import declare
from service.identity.visitor import Identities, authorised
from service.jobs import bottlenecks, rechecks
from service.jobs import endpoints as jobs
from service.jobs.wire import event
from service.ongoing import Watched
from service.overview import endpoints as overview
from service.records import endpoints as records
from service.request_ids import Identified
from service.settings import Settings, ensure_token
from service.traces.requests import Traced
from service.traces.tracer import tracer
from service.webhooks import endpoints as webhooks
from service.workloads import endpoints as workloads
from service.workloads import insight, lookup

_SANDBOXES = 2
"""Of all API processes of a service, but one of each at least. Not tuned."""
_PARSERS = 2
"""Threads that parse bodies. Not tuned."""


def create_app(settings: Settings, patience: RequestPatience = DEFAULT) -> FastAPI:
    """Return the application, with a database and a sandbox of its own that live as long as it runs."""

    requests = RequestMetrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        database = Database(settings.database, connections=settings.database_connections)
        sandbox = Sandbox(max(1, _SANDBOXES // settings.api_processes), settings.walls)
        sandbox.start()
        database.tokens.put_owner(ensure_token(settings), settings.owner)
        database.signing_keys.ensure()
        streams = Shares("event streams", each=settings.max_streams_per_user, total=settings.max_streams)
        feeds, parsers = Feeds(database, event), CapacityLimiter(_PARSERS)
        app.state.context = Context(
            settings, database, sandbox, Identities(database), feeds, streams, parsers, requests
        )
        try:
            yield
        finally:
            sandbox.close()
            database.close()

    app = FastAPI(
        title="Loopwright",
        version="1",
        summary="Finds, proves and remembers the fastest schedules of tensor programs.",
        lifespan=lifespan,
        # The interactive documentation pages load their scripts from another host.
        docs_url=None,
        redoc_url=None,
        # A redirect would lead to whatever host the request names.
        redirect_slashes=False,
    )
    problems.install(app)
    openapi.install(app)
    app.add_middleware(Watched)
    app.add_middleware(AuditTrail)
    app.add_middleware(WholeBody, limit=settings.max_body_bytes, json=JsonLimits(), patience=patience)
    app.add_middleware(TokenFirst)
    app.add_middleware(KnownHost, hosts=settings.hosts)
    app.add_middleware(SafeHeaders)
    app.add_middleware(CountedRequests, metrics=requests)
    if (traced := tracer()) is not None:
        app.add_middleware(Traced, tracer=traced)
    app.add_middleware(Identified, log_requests=settings.log_requests)
    api = APIRouter(prefix=API_PREFIX, dependencies=[Depends(authorised)], responses=problems.RESPONSES)
    for router in (
        overview.router,
        jobs.router,
        bottlenecks.router,
        workloads.router,
        insight.router,
        lookup.router,
        records.router,
        ablations.router,
        rechecks.router,
        fleet.router,
        session.router,
        tokens.router,
        users.router,
        webhooks.router,
    ):
        declare(router)
        api.include_router(router)
    app.include_router(meta.router)
    app.include_router(api)
    pages.serve(app)
    return app

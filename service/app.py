"""The FastAPI application: routers, errors, limits, and the dashboard's files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from db import Database
from service import meta, problems
from service.access import session, tokens, users
from service.access.audit import AuditTrail
from service.access.headers import SafeHeaders, with_nonce
from service.access.known_host import KnownHost
from service.access.token_first import TokenFirst
from service.bodies.shape import JsonLimits
from service.bodies.whole import WholeBody
from service.context import Context
from service.feeds import Feeds
from service.fleet import endpoints as fleet
from service.identity.rights import check_declared
from service.identity.visitor import Identities, authorised
from service.jobs import endpoints as jobs
from service.jobs import rechecks
from service.jobs.wire import event
from service.ongoing import Watched
from service.overview import endpoints as overview
from service.patience import DEFAULT, Patience
from service.problems import ProblemError
from service.records import endpoints as records
from service.request_ids import Identified
from service.request_metrics import API_PREFIX, Measured, RequestMetrics
from service.sandbox import Sandbox
from service.settings import Settings, ensure_token
from service.shares import Shares
from service.traces.requests import Traced
from service.traces.tracer import tracer
from service.webhooks import endpoints as webhooks
from service.workloads import endpoints as workloads
from service.workloads import insight, lookup

DASHBOARD = Path(__file__).parent / "dashboard" / "dist"
_SANDBOXES = 2
_PARSERS = 2
"""Threads that parse bodies. Not tuned."""


def create_app(settings: Settings, patience: Patience = DEFAULT) -> FastAPI:
    """The application, with a database and a sandbox of its own that live as long as it runs."""

    requests = RequestMetrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        database = Database(settings.database)
        sandbox = Sandbox(_SANDBOXES, settings.walls)
        await anyio.to_thread.run_sync(sandbox.start)
        database.tokens.put_owner(ensure_token(settings), settings.owner)
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
    app.add_middleware(Watched)
    app.add_middleware(AuditTrail)
    app.add_middleware(WholeBody, limit=settings.max_body_bytes, json=JsonLimits(), patience=patience)
    app.add_middleware(TokenFirst)
    app.add_middleware(KnownHost, hosts=settings.hosts)
    app.add_middleware(SafeHeaders)
    app.add_middleware(Measured, metrics=requests)
    if (traced := tracer()) is not None:
        app.add_middleware(Traced, tracer=traced)
    app.add_middleware(Identified, log_requests=settings.log_requests)
    api = APIRouter(prefix=API_PREFIX, dependencies=[Depends(authorised)], responses=problems.RESPONSES)
    for router in (
        overview.router,
        jobs.router,
        workloads.router,
        insight.router,
        lookup.router,
        records.router,
        rechecks.router,
        fleet.router,
        session.router,
        tokens.router,
        users.router,
        webhooks.router,
    ):
        check_declared(router)
        api.include_router(router)
    app.include_router(meta.router)
    app.include_router(api)
    _serve_dashboard(app)
    return app


def _serve_dashboard(app: FastAPI) -> None:
    """The built dashboard at every path that is not the API's: its views are routes of the page itself."""
    app.mount("/assets", StaticFiles(directory=DASHBOARD / "assets", check_dir=False), name="assets")
    not_found = app.router.default

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        # Where no route matches, rather than as a route that matches all: a wrong method must not look like a page.
        if scope["type"] == "http":
            await _page(Request(scope))(scope, receive, send)
        else:
            await not_found(scope, receive, send)

    app.router.default = page


def _page(request: Request) -> Response:
    path = request.url.path.lstrip("/")
    if path.startswith("api/") or request.method not in ("GET", "HEAD"):
        raise ProblemError(404, "not-found", f"There is no {request.url.path}; see /openapi.json.")
    try:
        file = (DASHBOARD / path).resolve()
        is_file = file.is_file()
    except (OSError, ValueError) as error:  # a name that no file can have
        raise ProblemError(404, "not-found", "There is no such page.") from error
    if path != "index.html" and is_file and file.is_relative_to(DASHBOARD):
        return FileResponse(file)
    index = DASHBOARD / "index.html"
    if not index.is_file():
        raise ProblemError(404, "no-dashboard", "The dashboard is not built; run scripts/setup.")
    return HTMLResponse(with_nonce(index.read_text(), request.scope), headers={"Cache-Control": "no-store"})

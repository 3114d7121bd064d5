"""The context of endpoints: settings, database and sandbox, created once per app."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from anyio import CapacityLimiter
from fastapi import Depends, Query, Request

from db import Database
from db.access.visibility import Viewer
from loopwright import schemas
from service.api.answers import Answers
from service.api.cache import Cache
from service.api.feeds import Feeds
from service.api.liveness import LIVE_SECONDS as LIVE_SECONDS
from service.api.request_metrics import RequestMetrics
from service.api.sandbox import Sandbox
from service.api.shares import Shares
from service.api.written import Written
from service.identity.visitor import Identities, Visitor
from service.settings import Settings
from tuner.inspection.answers import Assembly, DecisionTable

_ASSEMBLY_CHARACTERS = 32 * 2**20
_DECISION_CELLS = 2**20
_VIEWERS = 1000
_FINISHED_TASKS = 20_000
"""Some tens of megabytes. Not tuned."""
_UNFINISHED_TASKS = 5_000
_BEST_CHARACTERS = 16 * 2**20
"""Some thousand bests. Not tuned."""


def _cells(table: DecisionTable) -> int:
    return 1 + len(table.rows) * len(table.columns)


@dataclass(frozen=True, slots=True)
class Context:
    settings: Settings
    database: Database
    sandbox: Sandbox
    identities: Identities
    feeds: Feeds
    streams: Shares
    parsers: CapacityLimiter
    requests: RequestMetrics
    viewer: Viewer | None = None
    """Whom the database is restricted to; None: nobody."""
    answers: Answers = field(default_factory=Answers)
    assembly: Cache[Assembly] = field(default_factory=lambda: Cache(_ASSEMBLY_CHARACTERS, lambda made: len(made.text)))
    finished: Cache[Written[schemas.Job]] = field(
        default_factory=lambda: Cache(_FINISHED_TASKS, lambda job: 1 + len(job.model.tasks))
    )
    """Jobs that have ended, by all that may change of them. Whoever takes one has read it as its viewer."""
    unfinished: Cache[Written[schemas.Job]] = field(
        default_factory=lambda: Cache(_UNFINISHED_TASKS, lambda job: 1 + len(job.model.tasks))
    )
    """The same of the others, for a second."""
    bests: Cache[str] = field(default_factory=lambda: Cache(_BEST_CHARACTERS, len))
    """Their JSON, by all that may change of them. Whoever takes one has read its key as its viewer."""
    recent_trials: Cache[int] = field(default_factory=lambda: Cache(_VIEWERS, lambda _: 1))
    """By viewer and time."""
    decisions: Cache[DecisionTable] = field(default_factory=lambda: Cache(_DECISION_CELLS, _cells))


def context_of(request: Request) -> Context:
    """Return the context of an app, with the database restricted to what the caller may see."""
    found: Context = request.app.state.context
    visitor: Visitor | None = getattr(request.state, "visitor", None)
    viewer = getattr(request.state, "viewer", None if visitor is None else visitor.viewer)
    return found if viewer is None else replace(found, database=found.database.seen_by(viewer), viewer=viewer)


async def context(request: Request) -> Context:
    """Return what `context_of` returns. FastAPI calls this function, which is not ``async``, in a thread."""
    return context_of(request)


@dataclass(frozen=True, slots=True)
class PageRequest:
    size: int
    token: str | None


async def page_request(
    page_size: Annotated[int, Query(ge=1, le=500, description="Items on a page")] = 50,
    page_token: Annotated[str | None, Query(description="next_page_token of the page before")] = None,
) -> PageRequest:
    return PageRequest(page_size, page_token)


Ctx = Annotated[Context, Depends(context)]
Paging = Annotated[PageRequest, Depends(page_request)]

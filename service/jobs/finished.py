"""Jobs as they are sent. Those that have ended are read from the database once, and again when their notes change."""

from __future__ import annotations

import json
from collections.abc import Sequence

from db.engine.paging import Page
from db.views import JobView
from loopwright import schemas
from loopwright.codegen.kinds import FINISHED
from service.api.written import Written
from service.context import Context
from service.jobs import wire
from service.jobs.waits import Waits


def on_wire(ctx: Context, views: Sequence[JobView]) -> list[schemas.Job]:
    """Return the jobs in their order, with their tasks."""
    return [each.model for each in _written(ctx, views)]


def page_json(ctx: Context, page: Page[JobView]) -> str:
    """Return the JSON of a page of jobs, in which that of a job that has ended is written once."""
    items = ",".join(each.json for each in _written(ctx, page.items))
    return f'{{"items":[{items}],"next_page_token":{json.dumps(page.next_page_token)}}}'


def _written(ctx: Context, views: Sequence[JobView]) -> list[Written[schemas.Job]]:
    """Return the jobs in their order. All that are not kept are read in one query."""
    unknown = [view.id for view in views if _key(view) not in ctx.finished]
    tasks = ctx.database.tasks.of_jobs(unknown) if unknown else {}
    waits = Waits.read(ctx) if any(view.state not in FINISHED for view in views) else Waits(())

    def made(view: JobView) -> Written[schemas.Job]:
        found = tasks[view.id] if view.id in tasks else ctx.database.tasks.of_job(view.id)
        return Written(wire.job(view, found, None if view.state in FINISHED else waits.activity(view)))

    def sent(view: JobView) -> Written[schemas.Job]:
        return ctx.finished.get(_key(view), lambda: made(view)) if view.state in FINISHED else made(view)

    return [sent(view) for view in views]


def _key(view: JobView) -> tuple[str, tuple[str, ...], str, tuple[str, ...]]:
    """Return what a job that has ended is kept under: all of it that may change.

    A task that is certified later changes with a note of its job (`db.jobs.left`).
    """
    return view.id, view.tags, view.description, view.notes

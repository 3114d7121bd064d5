"""Jobs as they are sent. What a job had to say is written once, and again when it has changed."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from db.engine.paging import Page
from db.views import JobView
from loopwright import schemas
from loopwright.codegen.kinds import FINISHED
from service.api.answers import CLOCK_SECONDS
from service.api.written import Written
from service.context import Context
from service.jobs import wire
from service.jobs.waits import Waits

_Key = tuple[object, ...]


def on_wire(ctx: Context, views: Sequence[JobView]) -> list[schemas.Job]:
    """Return the jobs in their order, with their tasks."""
    return [each.model for each in _written(ctx, views)]


def job_json(ctx: Context, view: JobView) -> str:
    """Return the JSON of a job."""
    [written] = _written(ctx, [view])
    return written.json


def page_json(ctx: Context, page: Page[JobView]) -> str:
    """Return the JSON of a page of jobs."""
    items = ",".join(each.json for each in _written(ctx, page.items))
    return f'{{"items":[{items}],"next_page_token":{json.dumps(page.next_page_token)}}}'


def _written(ctx: Context, views: Sequence[JobView]) -> list[Written[schemas.Job]]:
    """Return the jobs in their order. All that are not kept are read in one query."""
    unfinished = [view for view in views if view.state not in FINISHED]
    activities = _activities(ctx, unfinished)
    keys = {view.id: _key(view) for view in views} | _keys_of_unfinished(ctx, unfinished, activities)
    caches = {view.id: ctx.finished if view.state in FINISHED else ctx.unfinished for view in views}
    unknown = [view.id for view in views if keys[view.id] not in caches[view.id]]
    tasks = ctx.database.tasks.of_jobs(unknown) if unknown else {}

    def sent(view: JobView) -> Written[schemas.Job]:
        return caches[view.id].get(keys[view.id], lambda: made(view))

    def made(view: JobView) -> Written[schemas.Job]:
        found = tasks[view.id] if view.id in tasks else ctx.database.tasks.of_job(view.id)
        return Written(wire.job(view, found, activities.get(view.id)))

    return [sent(view) for view in views]


def _activities(ctx: Context, unfinished: Sequence[JobView]) -> dict[str, str | None]:
    """Return what jobs do or wait for, by id."""
    waits = Waits.read(ctx) if unfinished else Waits(())
    return {view.id: waits.activity(view) for view in unfinished}


def _key(view: JobView) -> _Key:
    """Return what a job that has ended is kept under: all of it that may change.

    A task that is certified later changes with a note of its job (`db.jobs.left`).
    """
    said = view.notes, view.tags, view.description, view.error, view.phases, view.model_time
    return view.id, view.state, view.started_at, *said


def _keys_of_unfinished(
    ctx: Context, unfinished: Sequence[JobView], activities: dict[str, str | None]
) -> dict[str, _Key]:
    """Return what jobs are kept under, by id, for as long as their remaining time may be old.

    Their tasks change with events, which are read before the tasks.
    """
    events = ctx.database.events.latest([view.id for view in unfinished]) if unfinished else {}
    period = time.monotonic() // CLOCK_SECONDS
    return {view.id: (*_key(view), events.get(view.id), activities[view.id], period) for view in unfinished}

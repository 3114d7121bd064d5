"""Jobs as they are sent. The tasks of those that have ended never change: they are read from the database once."""

from __future__ import annotations

from collections.abc import Sequence

from db.views import JobView
from loopwright import schemas
from loopwright.codegen.kinds import FINISHED
from service.context import Context
from service.jobs import wire
from service.jobs.waits import Waits


def on_wire(ctx: Context, views: Sequence[JobView]) -> list[schemas.Job]:
    """Return the jobs in their order, with their tasks. All that are not kept are read in one query."""
    unknown = [view.id for view in views if _key(view) not in ctx.finished]
    tasks = ctx.database.tasks.of_jobs(unknown) if unknown else {}
    waits = Waits.read(ctx) if any(view.state not in FINISHED for view in views) else Waits(())

    def made(view: JobView) -> schemas.Job:
        found = tasks[view.id] if view.id in tasks else ctx.database.tasks.of_job(view.id)
        return wire.job(view, found, None if view.state in FINISHED else waits.activity(view))

    def sent(view: JobView) -> schemas.Job:
        return ctx.finished.get(_key(view), lambda: made(view)) if view.state in FINISHED else made(view)

    return [sent(view) for view in views]


def _key(view: JobView) -> tuple[str, tuple[str, ...], str]:
    """Return what a job that has ended is kept under: all of it that may change."""
    return view.id, view.tags, view.description

"""Jobs as they are sent. Those that have ended never change: their tasks are read from the database once."""

from __future__ import annotations

from collections.abc import Sequence

from db.views import JobView
from loopwright import schemas
from loopwright.codegen.kinds import FINISHED
from service.context import Context
from service.jobs import wire


def on_wire(ctx: Context, views: Sequence[JobView]) -> list[schemas.Job]:
    """Return the jobs in their order, with their tasks. All that are not kept are read in one query."""
    unknown = [view.id for view in views if view.id not in ctx.finished]
    tasks = ctx.database.tasks.of_jobs(unknown) if unknown else {}

    def made(view: JobView) -> schemas.Job:
        return wire.job(view, tasks[view.id] if view.id in tasks else ctx.database.tasks.of_job(view.id))

    def sent(view: JobView) -> schemas.Job:
        return ctx.finished.get(view.id, lambda: made(view)) if view.state in FINISHED else made(view)

    return [sent(view) for view in views]

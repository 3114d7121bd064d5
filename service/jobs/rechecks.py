"""``/rechecks`` and ``/jobs/{id}/rechecks``: rechecks of bests, on request or when they are due."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from loopwright import schemas
from service.bodies.route import ParsedRoute
from service.context import Ctx
from service.fleet.offers import resolve
from service.identity.rights import needs
from service.identity.visitor import Asking
from service.jobs.sent import on_wire
from service.problems import BODY, ProblemError
from service.rechecks import jobs
from service.rechecks.wire import recheck

router = APIRouter(tags=["jobs"], route_class=ParsedRoute)


@router.post("/rechecks", status_code=202, responses=BODY)
@needs("submit")
def submit_recheck(
    ctx: Ctx, visitor: Asking, body: schemas.NewRecheck, request: Request, response: Response
) -> schemas.Job:
    """Store a job that races the bests of these workloads with the unscheduled programs, as their certificates did."""
    machine = resolve(ctx, body.target)
    due = ctx.database.rechecks.asked(body.workloads, machine)
    if not due:
        raise ProblemError(
            422,
            "nothing-to-recheck",
            "None of these workloads has a best, other than its baseline, on workers of this target. Tune them first.",
        )
    view = jobs.submit(ctx.database, due, machine, user_name=visitor.user)
    response.headers["Location"] = request.url_for("get_job", job_id=view.id).path
    [job] = on_wire(ctx, [view])
    return job


@router.get("/jobs/{job_id}/rechecks")
def list_rechecks(ctx: Ctx, job_id: str) -> schemas.Page[schemas.Recheck]:
    """List the bests that the job races again, and the result of each; empty for other jobs."""
    ctx.database.jobs.get(job_id)
    items = [recheck(view) for view in ctx.database.rechecks.of_job(job_id)]
    return schemas.Page(items=items, next_page_token=None)

"""``/jobs``: preview, submit, list, follow, cancel, and take the result."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime, TypeAdapter, ValidationError

from db.engine.changes import Topic
from db.states import JobSort
from loopwright import schemas
from loopwright.codegen.kinds import JobState
from loopwright.codegen.versions import TVM_VERSION
from service.api.answers import CLOCK_SECONDS, LONGEST_SECONDS, kept
from service.bodies.route import ParsedRoute
from service.caller import caller_of
from service.context import Context, Ctx, Paging
from service.identity.rights import needs
from service.identity.visitor import Asking, Visitor
from service.jobs import wire
from service.jobs.chrome_trace import TIMELINE, chrome_trace
from service.jobs.events import EVENTS, EventStream, stream
from service.jobs.sent import job_json, on_wire, page_json
from service.jobs.submission import preview, resubmit, submit
from service.problems import BODY, CONFLICTS, ProblemError, file_response
from service.records import exchange

_ShapesText = Annotated[str | None, Query(alias="shapes", description='Which shapes of the job, as {"n": 128}')]


async def _shapes(text: _ShapesText = None) -> dict[str, int] | None:
    if text is None:
        return None
    try:
        return TypeAdapter(dict[str, int]).validate_json(text)
    except ValidationError as error:
        detail = f'shapes is {text!r}; give a JSON object of extents, such as {{"n": 128}}.'
        raise ProblemError(422, "invalid-request", detail) from error


LastEventId = Annotated[int, Header(ge=0, le=2**62, description="Id of the last event that was seen; 0: of none")]
IdempotencyKey = Annotated[str | None, Header(max_length=200, description="The same key and body give the same job")]
Shapes = Annotated[dict[str, int] | None, Depends(_shapes)]
router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=ParsedRoute)


def _job(ctx: Context, job_id: str) -> schemas.Job:
    (job,) = on_wire(ctx, [ctx.database.jobs.get(job_id)])
    return job


def _own(ctx: Context, visitor: Visitor, job_id: str, do: str) -> None:
    """Raise ProblemError (403) unless the job is the visitor's own, or the visitor is an admin."""
    user = ctx.database.jobs.get(job_id).user_name
    if user != visitor.user and "administer" not in visitor.rights:
        raise ProblemError(403, "not-yours", f"This job is {user}'s. Only {user} or an admin can {do}.")


@router.post("", status_code=202, responses=BODY | CONFLICTS)
@needs("submit")
def submit_job(
    ctx: Ctx,
    visitor: Asking,
    body: schemas.SubmitJob,
    request: Request,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> schemas.Job | schemas.JobGroup:
    """Check and store a job, which a controller then runs. The same Idempotency-Key and body return the same job.

    With ``targets``, store a job for each target, or none, and return their group.
    """
    views = submit(ctx, visitor, body, idempotency_key, TVM_VERSION)
    jobs, group = on_wire(ctx, views), views[0].group_id
    if group is None:
        response.headers["Location"] = request.url_for("get_job", job_id=jobs[0].id).path
        return jobs[0]
    response.headers["Location"] = f"{request.url_for('list_jobs').path}?group={group}"
    return schemas.JobGroup(id=group, jobs=jobs)


@router.post("/preview", responses=BODY)
@needs("submit")
def preview_job(ctx: Ctx, body: schemas.SubmitJob) -> schemas.Preview:
    """Return the tasks of a submission, their known bests, and the functions that are not tuned, without storing it."""
    return preview(ctx, body)


@router.get("", response_model=schemas.Page[schemas.Job])
@kept(CLOCK_SECONDS, Topic.JOBS, Topic.WORKERS, Topic.TRIALS)
def list_jobs(
    ctx: Ctx,
    paging: Paging,
    state: Annotated[list[schemas.JobState] | None, Query(description="Only jobs in this state; repeat")] = None,
    owner: Annotated[str | None, Query(description="Only jobs of this user")] = None,
    group: Annotated[str | None, Query(description="Only jobs of this group, in the order of its targets")] = None,
    name: Annotated[str | None, Query(description="Only jobs of this name")] = None,
    q: Annotated[
        str, Query(max_length=200, description="Part of a name or of the place of a call, or an id's beginning")
    ] = "",
    since: Annotated[AwareDatetime | None, Query(description="Only jobs that were submitted then or later")] = None,
    tag: Annotated[str | None, Query(max_length=64, description="Only jobs with this tag")] = None,
    sort: Annotated[schemas.JobSort, Query(description="Column to sort by")] = "created",
    order: Annotated[Literal["asc", "desc"] | None, Query(description="Without it, what suits the column")] = None,
) -> Response:
    """List jobs, the newest first unless sorted otherwise."""
    states = [JobState(each) for each in state or ()]
    descending = sort != "name" if order is None else order == "desc"
    with ctx.database.snapshot():
        page = ctx.database.jobs.page(
            *(paging.size, paging.token, states, owner, group, name),
            search=q.strip(),
            since=since,
            tag=tag,
            sort=JobSort(sort),
            descending=descending,
        )
        return Response(page_json(ctx, page), media_type="application/json")


@router.get("/{job_id}", response_model=schemas.Job)
@kept(CLOCK_SECONDS, Topic.JOBS, Topic.WORKERS, Topic.TRIALS, of="job_id")
def get_job(ctx: Ctx, job_id: str) -> Response:
    """Return a job with its tasks and progress."""
    with ctx.database.snapshot():
        return Response(job_json(ctx, ctx.database.jobs.get(job_id)), media_type="application/json")


@router.patch("/{job_id}", responses=BODY)
@needs("submit")
def describe_job(ctx: Ctx, visitor: Asking, job_id: str, body: schemas.DescribeJob) -> schemas.Job:
    """Replace the tags and the description of one's own job, or, as an admin, of any job."""
    _own(ctx, visitor, job_id, "describe it")
    ctx.database.jobs.describe(job_id, tags=body.tags, description=body.description)
    return _job(ctx, job_id)


@router.post("/{job_id}/cancel")
@needs("cancel")
def cancel_job(ctx: Ctx, visitor: Asking, job_id: str) -> schemas.Job:
    """Cancel one's own job, or, as an admin, any job. Its measurements are kept. A finished job does not change."""
    _own(ctx, visitor, job_id, "cancel it")
    ctx.database.jobs.request_cancel(job_id)
    return _job(ctx, job_id)


@router.post("/{job_id}/resubmit", status_code=202, responses=BODY | CONFLICTS)
@needs("submit")
def resubmit_job(
    ctx: Ctx,
    visitor: Asking,
    job_id: str,
    body: schemas.Resubmit,
    request: Request,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> schemas.Job:
    """Create a job with the same module, target and space, and with budget, seed and force of the body or as before."""
    view = resubmit(ctx, visitor, job_id, body, idempotency_key, TVM_VERSION)
    response.headers["Location"] = request.url_for("get_job", job_id=view.id).path
    return _job(ctx, view.id)


@router.get("/{job_id}/trials")
@kept(LONGEST_SECONDS, Topic.JOBS, Topic.TRIALS, of="job_id")
def list_trials(ctx: Ctx, paging: Paging, job_id: str) -> schemas.Page[schemas.Trial]:
    """List the job's trials, sorted by task and number."""
    ctx.database.jobs.get(job_id)
    page = ctx.database.trials.page(job_id, paging.size, paging.token)
    return schemas.Page(items=[wire.trial(view) for view in page.items], next_page_token=page.next_page_token)


async def _counted(ctx: Ctx, request: Request) -> AsyncIterator[None]:
    """Count a stream among those of its caller until it ends. Raises ProblemError (429, 503): there are too many."""
    with ctx.streams.hold(caller_of(request.scope)):
        yield


@router.get(
    "/{job_id}/events",
    response_class=EventStream,
    responses={200: EVENTS},
    dependencies=[Depends(_counted)],
)
def follow_job(ctx: Ctx, job_id: str, last_event_id: LastEventId = 0) -> EventStream:
    """Send the events after Last-Event-ID as server-sent events. The stream ends when the job is finished."""
    ctx.database.jobs.get(job_id)
    return EventStream(stream(ctx.feeds, job_id, last_event_id), ping=15)


@router.get("/{job_id}/chrome-trace", response_class=StreamingResponse, responses={200: TIMELINE})
def get_chrome_trace(ctx: Ctx, job_id: str) -> StreamingResponse:
    """Return the timeline of proposing, building and measuring in Trace Event JSON, for Perfetto and chrome://tracing."""
    parts = chrome_trace(ctx.database.jobs.get(job_id), ctx.database.trials.all_of_job(job_id))
    return StreamingResponse(parts, media_type="application/json")


@router.get("/{job_id}/records", response_class=StreamingResponse, responses=file_response(exchange.TAR))
def export_job_records(ctx: Ctx, job_id: str) -> StreamingResponse:
    """Export the job's records as TVM's JSON pair (database_workload.json, database_tuning_record.json) in a tar."""
    ctx.database.jobs.get(job_id)
    return exchange.tar(exchange.export_job(ctx, job_id), f"loopwright-{job_id}.tar")


@router.put("/{job_id}/comparison", responses=BODY)
@needs("submit")
def store_comparison(ctx: Ctx, visitor: Asking, job_id: str, body: schemas.Comparison) -> schemas.StoredComparison:
    """Store a comparison of the job's model with other engines, and replace an earlier comparison.

    Only the job's owner and admins may store one. No certificate covers the figures, which are the sender's.
    """
    _own(ctx, visitor, job_id, "store a comparison with it")
    return wire.comparison(ctx.database.comparisons.put(job_id, visitor.user, body.model_dump(mode="json")))


@router.get("/{job_id}/comparison")
def get_comparison(ctx: Ctx, job_id: str) -> schemas.StoredComparison | None:
    """Return the latest comparison that was stored with the job; null if there is none."""
    ctx.database.jobs.get(job_id)
    stored = ctx.database.comparisons.of_job(job_id)
    return None if stored is None else wire.comparison(stored)


@router.get("/{job_id}/gate")
def get_gate(ctx: Ctx, job_id: str) -> schemas.GateState | None:
    """Return the reference of the job's model, and the result once all tasks are finished; null without a gate."""
    ctx.database.jobs.get(job_id)
    stored = ctx.database.gates.of_job(job_id)
    return None if stored is None else schemas.GateState.model_validate(stored.request | {"result": stored.result})


@router.get("/{job_id}/module")
def get_module(ctx: Ctx, job_id: str, shapes: Shapes) -> dict[str, Any]:
    """Return the submitted module with the best known schedules applied. A Relax module is legalised and fused.

    ``data`` is the module as TVM's JSON; ``applied`` and ``missed`` name the functions with and without a best. A job
    for several shapes keeps its module symbolic: say with ``shapes={"n": 128}`` which of them is wanted.
    """
    view = ctx.database.jobs.get(job_id)
    module_json = ctx.database.jobs.inputs(job_id).module_json
    if not module_json:
        raise ProblemError(
            409, "no-module", "This job races known schedules: it has no module. Give a job that tuned one."
        )
    hashes = [task.workload_hash for task in ctx.database.tasks.of_job(job_id)]
    bests = ctx.database.lookup.bests(hashes, view.target_json, device_class_id=view.device_class_id)
    module = ctx.sandbox.apply(
        module_json=module_json,
        target_json=view.target_json,
        traces={workload_hash: known.best.trace_json for workload_hash, known in bests.items()},
        shapes=shapes,
    )
    return {"format": "tvm-json", "data": module.module_json, "applied": module.applied, "missed": module.missed}

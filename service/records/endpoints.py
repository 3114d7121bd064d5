"""``/records`` and ``/bests``: measured trials and certified bests."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from db.engine.changes import Topic
from loopwright import schemas
from service.api.answers import CLOCK_SECONDS, LONGEST_SECONDS, kept
from service.bodies.route import ParsedRoute
from service.context import Context, Ctx, Paging
from service.fleet.offers import resolve
from service.identity.rights import needs
from service.identity.visitor import Asking
from service.problems import BODY, file_response
from service.records import exchange, wire
from tuner.inspection.answers import Assembly

router = APIRouter(tags=["records"], route_class=ParsedRoute)

HashQuery = Annotated[str | None, Query(description="Only those of this workload")]
TargetQuery = Annotated[str | None, Query(description="'auto', a target string or its JSON; without it, all targets")]


def _class(ctx: Context, target: str | None) -> str | None:
    return None if target is None else resolve(ctx, target).id


@router.get("/bests")
@kept(CLOCK_SECONDS, Topic.WORKERS)
def list_bests(
    ctx: Ctx, paging: Paging, target: TargetQuery = None, workload_hash: HashQuery = None
) -> schemas.Page[schemas.Best]:
    """List the certified best of each workload and device class, the newest first."""
    page = ctx.database.certificates.bests(
        workload_hash=workload_hash,
        device_class_id=_class(ctx, target),
        page_size=paging.size,
        page_token=paging.token,
    )
    return schemas.Page(items=[wire.best(view) for view in page.items], next_page_token=page.next_page_token)


@router.get("/keys")
@kept(LONGEST_SECONDS, Topic.OTHER)
def list_signing_keys(ctx: Ctx) -> schemas.Page[schemas.SigningKey]:
    """List the public keys that sign certificates, the newest first, including those that were replaced."""
    views = ctx.database.signing_keys.published()
    return schemas.Page(items=[wire.signing_key(view) for view in views], next_page_token=None)


@router.get("/records")
@kept(CLOCK_SECONDS, Topic.WORKERS, Topic.TRIALS, of="workload_hash")
def list_records(
    ctx: Ctx,
    paging: Paging,
    workload_hash: HashQuery = None,
    target: TargetQuery = None,
    q: Annotated[
        str, Query(max_length=200, description="Part of a name or of the place of a call, or a hash's beginning")
    ] = "",
    sort: Annotated[Literal["newest", "latency"], Query(description="The newest or the fastest first")] = "newest",
) -> schemas.Page[schemas.Record]:
    """List measured trials."""
    page = ctx.database.records.page(
        workload_hash=workload_hash,
        device_class_id=_class(ctx, target),
        search=q.strip(),
        sort=sort,
        page_size=paging.size,
        page_token=paging.token,
    )
    return schemas.Page(items=[wire.record(view) for view in page.items], next_page_token=page.next_page_token)


@router.get("/records/export", response_class=StreamingResponse, responses=file_response(exchange.TAR))
def export_records(ctx: Ctx, target: TargetQuery = None) -> StreamingResponse:
    """Export the certified bests as TVM's JSON pair (database_workload.json, database_tuning_record.json) in a tar."""
    return exchange.tar(exchange.export(ctx, _class(ctx, target)), "loopwright-records.tar")


async def _raw_body(request: Request) -> bytes:
    return await request.body()


@router.post(
    "/records/import",
    responses=BODY,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {exchange.TAR: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
@needs("import")
def import_records(ctx: Ctx, visitor: Asking, body: Annotated[bytes, Depends(_raw_body)]) -> schemas.ImportReport:
    """Import TVM's JSON pair in a tar. Valid records are stored, and lines that cannot be imported are reported.

    The bytes of the body count to the user's limit of bytes a day.
    """
    ctx.database.uses.admit_import(visitor.user, len(body))
    return exchange.import_tar(ctx, body, visitor.user)


@router.get("/records/{record_id}")
def get_record(ctx: Ctx, record_id: str) -> schemas.RecordDetail:
    """Return a record with its samples, device, provenance and certificate, and the TVMScript before and after."""
    found = ctx.database.records.get(record_id)
    record = found.record
    job = None if record.job_id is None else ctx.database.jobs.get(record.job_id)
    scripts = ctx.sandbox.scripts(
        module_json=found.workload.module_json, trace_json=record.trace_json, target_json=record.target_json
    )
    return wire.detail(found, scripts, job)


@router.get("/records/{record_id}/assembly")
def get_assembly(ctx: Ctx, record_id: str) -> schemas.Assembly:
    """Return the machine code of a record's program: assembly for llvm, and CUDA source for cuda."""
    found = ctx.database.records.get(record_id)

    def build() -> Assembly:
        return ctx.sandbox.assembly(
            module_json=found.workload.module_json,
            trace_json=found.record.trace_json,
            target_json=found.record.target_json,
        )

    return wire.assembly(ctx.assembly.get(record_id, build))

"""``/records`` and ``/bests``: what was measured, what is proven."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from loopwright import schemas
from service.context import Context, Ctx, Paging
from service.fleet.offers import resolve
from service.records import exchange, wire
from service.records.reproduce import reproduce

router = APIRouter(tags=["records"])

TargetQuery = Annotated[str | None, Query(description="'auto', a target string or its JSON; without it, all targets")]


def _class(ctx: Context, target: str | None) -> str | None:
    return None if target is None else resolve(ctx, target).id


@router.get("/bests")
def list_bests(
    ctx: Ctx, paging: Paging, target: TargetQuery = None, workload_hash: str | None = None
) -> schemas.Page[schemas.Best]:
    """The certified best of each workload and device class, the newest first."""
    page = ctx.database.certificates.bests(
        workload_hash=workload_hash,
        device_class_id=_class(ctx, target),
        page_size=paging.size,
        page_token=paging.token,
    )
    return schemas.Page(items=[wire.best(view) for view in page.items], next_page_token=page.next_page_token)


@router.get("/records")
def list_records(
    ctx: Ctx,
    paging: Paging,
    workload_hash: str | None = None,
    target: TargetQuery = None,
    sort: Literal["newest", "latency"] = "newest",
) -> schemas.Page[schemas.Record]:
    """Measured trials."""
    page = ctx.database.records.page(
        workload_hash=workload_hash,
        device_class_id=_class(ctx, target),
        sort=sort,
        page_size=paging.size,
        page_token=paging.token,
    )
    items = [schemas.Record.model_validate(wire.summary(view)) for view in page.items]
    return schemas.Page(items=items, next_page_token=page.next_page_token)


@router.get("/records/export", response_class=Response)
def export_records(ctx: Ctx, target: TargetQuery = None) -> Response:
    """The certified bests as TVM's JSON pair (database_workload.json, database_tuning_record.json) in a tar."""
    return exchange.tar(exchange.export(ctx, _class(ctx, target)), "loopwright-records.tar")


async def _raw_body(request: Request) -> bytes:
    return await request.body()


@router.post("/records/import")
def import_records(ctx: Ctx, body: Annotated[bytes, Depends(_raw_body)]) -> schemas.ImportReport:
    """Take TVM's JSON pair in a tar, record by record; lines that cannot be taken are reported, good ones kept."""
    return exchange.import_tar(ctx, body)


@router.get("/records/{record_id}")
def get_record(ctx: Ctx, record_id: str) -> schemas.RecordDetail:
    """A record with all that it stands on: samples, device, provenance, certificate, TVMScript before and after."""
    found = ctx.database.records.get(record_id)
    record = found.record
    job = None if record.job_id is None else ctx.database.jobs.get(record.job_id)
    scripts = ctx.sandbox.call(
        "tuner.rendering:scripts",
        module_json=found.workload.module_json,
        trace_json=record.trace_json,
        target_json=record.target_json,
    )
    return schemas.RecordDetail.model_validate(
        wire.summary(record)
        | {
            "trace": None if record.trace_json is None else json.loads(record.trace_json),
            "run_secs": list(record.run_secs),
            "device": asdict(found.device_class) | {"target": json.loads(record.target_json)},
            "origin": record.origin,
            "predicted": record.predicted,
            "parent": record.parent,
            "worker": record.worker,
            "seed": record.seed,
            "tvm_version": record.tvm_version,
            "certificate": None if found.certificate is None else wire.certificate(found.certificate),
            "script_before": scripts["before"],
            "script_after": scripts["after"],
            "trace_python": scripts["trace"],
            "job_name": None if job is None else job.name,
            "reproduce": None if job is None else reproduce(record, job),
        }
    )


@router.get("/records/{record_id}/assembly")
def get_assembly(ctx: Ctx, record_id: str) -> schemas.Assembly:
    """The machine code of a record's program: for llvm its assembly, for cuda the source that its compiler gets."""
    found = ctx.database.records.get(record_id)

    def build() -> schemas.Assembly:
        return schemas.Assembly.model_validate(
            ctx.sandbox.call(
                "workers.assembly:assembly",
                module_json=found.workload.module_json,
                trace_json=found.record.trace_json,
                target_json=found.record.target_json,
            )
        )

    return ctx.assembly.get(record_id, build)

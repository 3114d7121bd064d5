"""Imports and exports records as TVM's JSON pair, in a tar."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import Response

from db import json_pair
from db.inputs import ImportedRecord
from db.views import BestView
from loopwright import schemas
from loopwright.codegen.versions import TVM_VERSION
from service.context import Context
from tuner.answers import RecordLine
from tuner.types import DeviceClass

TAR = "application/x-tar"


def export(ctx: Context, device_class_id: str | None) -> bytes:
    """Return the certified bests as a tar of the pair, without those where the baseline won: they have no trace."""
    return _pack(
        ctx,
        [
            RecordLine(
                workload_hash=best.certificate.workload_hash,
                trace_json=best.trace_json,
                run_secs=list(best.certificate.value.best_run_secs),
                target_json=best.target_json,
            )
            for best in _bests(ctx, device_class_id)
        ],
    )


def export_job(ctx: Context, job_id: str) -> bytes:
    """Return all that a job measured as a tar of the pair, without baselines: they have no trace."""
    return _pack(
        ctx,
        [
            RecordLine(record.workload_hash, record.trace_json, list(record.run_secs), record.target_json)
            for record in ctx.database.records.of_job(job_id)
        ],
    )


def tar(content: bytes, name: str) -> Response:
    """Return a response that is saved as a file of that name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=TAR, headers=headers)


def _pack(ctx: Context, records: list[RecordLine]) -> bytes:
    hashes = sorted({record.workload_hash for record in records})
    modules = {workload_hash: ctx.database.workloads.get(workload_hash).module_json for workload_hash in hashes}
    files = ctx.sandbox.export(modules, records)
    return json_pair.pack(
        {
            "database_workload": files.database_workload,
            "database_tuning_record": files.database_tuning_record,
        }
    )


def _bests(ctx: Context, device_class_id: str | None) -> Iterator[BestView]:
    token = None
    while True:
        page = ctx.database.certificates.bests(device_class_id=device_class_id, page_size=500, page_token=token)
        yield from page.items
        token = page.next_page_token
        if token is None:
            return


def import_tar(ctx: Context, body: bytes) -> schemas.ImportReport:
    """Store the records that can be read. Raise InvalidArchive for a body that is not such a tar."""
    workload_text, record_text = json_pair.unpack(body)
    read = ctx.sandbox.read(workload_text, record_text)
    ctx.database.workloads.put(read.workloads, TVM_VERSION)
    classes = {
        target_json: ctx.database.devices.put(DeviceClass.imported(target_json, f"tvm {TVM_VERSION}"))
        for target_json in sorted({record.target_json for record in read.records})
    }
    count = ctx.database.records.import_(
        ImportedRecord(
            workload_hash=record.workload_hash,
            device_class_id=classes[record.target_json],
            trace_json=record.trace_json,
            run_secs=tuple(record.run_secs),
            tvm_version=TVM_VERSION,
        )
        for record in read.records
        if record.trace_json is not None
    )
    return schemas.ImportReport(
        workloads=len(read.workloads), imported=count.imported, duplicates=count.duplicates, errors=read.errors
    )

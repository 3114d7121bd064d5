"""Records in and out as TVM's JSON pair, in a tar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import Response

from db import json_pair
from db.inputs import ImportedRecord
from db.views import BestView
from loopwright import schemas
from loopwright.codegen.versions import TVM_VERSION
from service.context import Context
from tuner.types import DeviceClass, Workload


def export(ctx: Context, device_class_id: str | None) -> bytes:
    """The certified bests as a tar of the pair; those where the baseline won have no trace, and so no line."""
    return _pack(
        ctx,
        [
            {
                "workload_hash": best.certificate.workload_hash,
                "trace_json": best.trace_json,
                "run_secs": list(best.certificate.value.best_run_secs),
                "target_json": best.target_json,
            }
            for best in _bests(ctx, device_class_id)
        ],
    )


def export_job(ctx: Context, job_id: str) -> bytes:
    """All that a job measured, as a tar of the pair; baselines have no trace, and so no line."""
    return _pack(
        ctx,
        [
            {
                "workload_hash": record.workload_hash,
                "trace_json": record.trace_json,
                "run_secs": list(record.run_secs),
                "target_json": record.target_json,
            }
            for record in ctx.database.records.of_job(job_id)
        ],
    )


def tar(content: bytes, name: str) -> Response:
    """A tar to be saved under that name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/x-tar", headers=headers)


def _pack(ctx: Context, records: list[dict[str, Any]]) -> bytes:
    hashes = sorted({record["workload_hash"] for record in records})
    pair = ctx.sandbox.call(
        "db.tvm_json:export",
        workloads=[{"hash": key, "module_json": ctx.database.workloads.get(key).module_json} for key in hashes],
        records=records,
    )
    return json_pair.pack(pair)


def _bests(ctx: Context, device_class_id: str | None) -> Iterator[BestView]:
    token = None
    while True:
        page = ctx.database.certificates.bests(device_class_id=device_class_id, page_size=500, page_token=token)
        yield from page.items
        token = page.next_page_token
        if token is None:
            return


def import_tar(ctx: Context, body: bytes) -> schemas.ImportReport:
    """Keep what can be kept. Raises InvalidArchive for a body that is not such a tar."""
    workload_text, record_text = json_pair.unpack(body)
    found = ctx.sandbox.call("db.tvm_json:read", workload_text=workload_text, record_text=record_text)
    workloads = [Workload.from_json(item) for item in found["workloads"]]
    ctx.database.workloads.put(workloads, TVM_VERSION)
    classes = {
        target: ctx.database.devices.put(unknown_machine(target))
        for target in sorted({record["target_json"] for record in found["records"]})
    }
    count = ctx.database.records.import_(
        ImportedRecord(
            workload_hash=record["workload_hash"],
            device_class_id=classes[record["target_json"]],
            trace_json=record["trace_json"],
            run_secs=tuple(record["run_secs"]),
            tvm_version=TVM_VERSION,
        )
        for record in found["records"]
    )
    return schemas.ImportReport(
        workloads=len(workloads), imported=count.imported, duplicates=count.duplicates, errors=found["errors"]
    )


def unknown_machine(target_json: str) -> DeviceClass:
    """The device class of imported measurements: the files name no machine, so no timing compares with theirs."""
    return DeviceClass(target_json, "imported: machine unknown", (), 0, 0, f"tvm {TVM_VERSION}")

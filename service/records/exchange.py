"""Imports and exports records as TVM's JSON pair, in a tar."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import chain, groupby, islice
from tempfile import TemporaryFile

from fastapi.responses import StreamingResponse

from db import json_pair
from db.inputs import ImportedRecord
from loopwright import schemas
from loopwright.codegen.versions import TVM_VERSION
from service.context import Context
from tuner.answers import RecordLine
from tuner.types import DeviceClass

TAR = "application/x-tar"
_WORKLOADS_A_CALL = 50
"""Reading their modules takes a fraction of a second. Not tuned."""


def export(ctx: Context, device_class_id: str | None) -> Iterator[bytes]:
    """Return the certified bests as a tar of the pair, without those where the baseline won: they have no trace."""

    def lines() -> Iterator[RecordLine]:
        for best in ctx.database.certificates.all_bests(device_class_id):
            certificate = best.certificate
            samples = list(certificate.value.best_run_secs)
            yield RecordLine(certificate.workload_hash, best.trace_json, samples, best.target_json)

    return _packed(ctx, lines())


def export_job(ctx: Context, job_id: str) -> Iterator[bytes]:
    """Return all that a job measured as a tar of the pair, without baselines: they have no trace."""

    def lines() -> Iterator[RecordLine]:
        for task in ctx.database.tasks.of_job(job_id):
            for record in ctx.database.records.of_task(task.id):
                yield RecordLine(record.workload_hash, record.trace_json, list(record.run_secs), record.target_json)

    return _packed(ctx, lines())


def tar(content: Iterator[bytes], name: str) -> StreamingResponse:
    """Return a response that is saved as a file of that name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(content, media_type=TAR, headers=headers)


def _packed(ctx: Context, records: Iterator[RecordLine]) -> Iterator[bytes]:
    """Write the pair into two files, and return their tar. The records of a workload have to follow each other.

    What is in memory at a time is a few workloads and their records.
    """
    with contextlib.ExitStack() as files:
        # The sizes of both come first in a tar.
        workloads, lines = (files.enter_context(TemporaryFile(dir=ctx.settings.data_dir)) for _ in range(2))
        written = 0
        groups = (list(group) for _, group in groupby(records, key=lambda record: record.workload_hash))
        while chunk := list(islice(groups, _WORKLOADS_A_CALL)):
            hashes = [group[0].workload_hash for group in chunk]
            modules = {workload_hash: ctx.database.workloads.get(workload_hash).module_json for workload_hash in hashes}
            texts = ctx.sandbox.export(modules, list(chain.from_iterable(chunk)), written)
            workloads.write(texts.database_workload.encode())
            lines.write(texts.database_tuning_record.encode())
            written += len(chunk)
        kept = files.pop_all()
    return _closing(kept, json_pair.packed(workloads, lines))


def _closing(kept: contextlib.ExitStack, parts: Iterator[bytes]) -> Iterator[bytes]:
    with kept:
        yield from parts


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

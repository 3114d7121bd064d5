"""Imports and exports records as TVM's JSON pair, in a tar."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from tempfile import TemporaryFile

from fastapi.responses import StreamingResponse

from db.exchange import json_pair
from db.inputs import ImportedRecord
from loopwright import schemas
from loopwright.codegen.versions import TVM_VERSION
from service.context import Context
from service.ongoing import ongoing
from service.problems import ProblemError
from tuner.inspection.answers import RecordLine
from tuner.types import DeviceClass

TAR = "application/x-tar"
_WORKLOADS_A_CALL = 50
"""Reading their modules takes a fraction of a second. Not tuned."""
_PATIENCE_SECONDS = 60.0
"""For a busy service to go on with an export that has begun. Not tuned."""
_AGAIN_SECONDS = 1.0
"""Between two tries. Not tuned."""
_BUSY = (429, 503)
"""Statuses of problems that pass."""

Records = Callable[[Sequence[str]], Iterator[RecordLine]]
"""Returns the records of some workloads, given by their hashes."""


def export(ctx: Context, device_class_id: str | None) -> Iterator[bytes]:
    """Return the certified bests as a tar of the pair, without those where the baseline won: they have no trace."""
    certificates = ctx.database.certificates

    def records(hashes: Sequence[str]) -> Iterator[RecordLine]:
        for best in certificates.bests_of(hashes, device_class_id):
            certificate = best.certificate
            samples = list(certificate.value.best_run_secs)
            yield RecordLine(certificate.workload_hash, best.trace_json, samples, best.target_json)

    return _packed(ctx, certificates.workloads_with_bests(device_class_id), records, _WORKLOADS_A_CALL)


def export_job(ctx: Context, job_id: str) -> Iterator[bytes]:
    """Return all that a job measured as a tar of the pair, without baselines: they have no trace."""
    tasks = {task.workload_hash: task for task in ctx.database.tasks.of_job(job_id) if task.trials}

    def records(hashes: Sequence[str]) -> Iterator[RecordLine]:
        for workload_hash in hashes:
            for record in ctx.database.records.of_task(tasks[workload_hash].id):
                yield RecordLine(workload_hash, record.trace_json, list(record.run_secs), record.target_json)

    return _packed(ctx, tasks, records, 1)


def tar(content: Iterator[bytes], name: str) -> StreamingResponse:
    """Return a response that is saved as a file of that name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(content, media_type=TAR, headers=headers)


def _packed(ctx: Context, hashes: Iterable[str], records: Records, at_once: int) -> Iterator[bytes]:
    """Return the tar of the pair, which is made while it is read: ``at_once`` workloads with their records at a time.

    Raise ProblemError if it cannot be begun. It breaks off if it cannot be gone on with.
    """
    with contextlib.ExitStack() as files:
        listed, kept = (files.enter_context(TemporaryFile(dir=ctx.settings.data_dir)) for _ in range(2))
        size = 0
        for chunk in _chunks(hashes, _WORKLOADS_A_CALL):
            for workload_hash, module_bytes in ctx.database.workloads.module_bytes(chunk).items():
                listed.write(f"{workload_hash}\n".encode())
                size += json_pair.workload_line_bytes(module_bytes)
        listed.seek(0)
        chunks = enumerate(_chunks((line.decode().rstrip() for line in listed), at_once))
        begun = [_part(ctx, chunk, records, 0) for _, chunk in islice(chunks, 1)]
        rest = (_patiently(partial(_part, ctx, chunk, records, at_once * number)) for number, chunk in chunks)
        files_in_use = files.pop_all()
    return _closing(files_in_use, json_pair.packed(size, chain(begun, rest), kept))


def _chunks(values: Iterable[str], size: int) -> Iterator[list[str]]:
    left = iter(values)
    while chunk := list(islice(left, size)):
        yield chunk


def _part(ctx: Context, hashes: Sequence[str], records: Records, first: int) -> tuple[str, str]:
    """Return the lines of some workloads, of which the first is number ``first``, and of their records."""
    modules = ctx.database.workloads.modules(hashes)
    texts = ctx.sandbox.export({key: modules[key] for key in hashes}, list(records(hashes)), first)
    return texts.database_workload, texts.database_tuning_record


def _patiently(make: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """Return what ``make`` returns, also if the service is too busy for it at first. Raise ProblemError."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return make()
        except ProblemError as error:
            request = ongoing()
            if error.status not in _BUSY or (request is not None and request.left) or time.monotonic() > until:
                raise
            time.sleep(_AGAIN_SECONDS)


def _closing(files: contextlib.ExitStack, parts: Iterator[bytes]) -> Iterator[bytes]:
    with files:
        yield from parts


def import_tar(ctx: Context, body: bytes, user_name: str) -> schemas.ImportReport:
    """Store the records that can be read, for a user. Raise InvalidArchive for a body that is not such a tar."""
    workload_text, record_text = json_pair.unpack(body)
    read = ctx.sandbox.read(workload_text, record_text)
    ctx.database.workloads.import_(read.workloads, TVM_VERSION, user_name)
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

"""Imports and exports records as TVM's JSON pair, in a tar."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from tempfile import TemporaryFile
from typing import IO

from fastapi.responses import StreamingResponse

from db.exchange import json_pair
from db.inputs import ImportedRecord
from db.views import SignedDocument
from loopwright import schemas
from loopwright.codegen import signatures
from loopwright.codegen.kinds import SignedBy
from loopwright.codegen.versions import TVM_VERSION
from service.context import Context
from service.ongoing import ongoing
from service.problems import ProblemError
from service.records import carried
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

Records = Callable[[Sequence[str]], Iterator[tuple[RecordLine, SignedDocument | None]]]
"""Returns the records of some workloads, given by their hashes, with their signed certificates."""


def export(ctx: Context, device_class_id: str | None) -> Iterator[bytes]:
    """Return the certified bests as a tar of the pair, without those where the baseline won: they have no trace."""
    certificates = ctx.database.certificates

    def records(hashes: Sequence[str]) -> Iterator[tuple[RecordLine, SignedDocument | None]]:
        for best in certificates.bests_of(hashes, device_class_id):
            certificate = best.certificate
            samples = list(certificate.value.best_run_secs)
            record = RecordLine(certificate.workload_hash, best.trace_json, samples, best.target_json)
            yield record, certificate.signed

    return _packed(ctx, certificates.workloads_with_bests(device_class_id), records, _WORKLOADS_A_CALL)


def export_job(ctx: Context, job_id: str) -> Iterator[bytes]:
    """Return all that a job measured as a tar of the pair, without baselines: they have no trace."""
    tasks = {task.workload_hash: task for task in ctx.database.tasks.of_job(job_id) if task.trials}

    def records(hashes: Sequence[str]) -> Iterator[tuple[RecordLine, SignedDocument | None]]:
        for workload_hash in hashes:
            found = ctx.database.records.of_task(tasks[workload_hash].id)
            signed = ctx.database.certificates.signed([record.id for record in found if record.certified])
            for record in found:
                exported = RecordLine(workload_hash, record.trace_json, list(record.run_secs), record.target_json)
                yield exported, signed.get(record.id)

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
        listed, kept, signed = (files.enter_context(TemporaryFile(dir=ctx.settings.data_dir)) for _ in range(3))
        size = 0
        for chunk in _chunks(hashes, _WORKLOADS_A_CALL):
            for workload_hash, module_bytes in ctx.database.workloads.module_bytes(chunk).items():
                listed.write(f"{workload_hash}\n".encode())
                size += json_pair.workload_line_bytes(module_bytes)
        listed.seek(0)
        chunks = enumerate(_chunks((line.decode().rstrip() for line in listed), at_once))
        begun = [_part(ctx, chunk, records, 0, signed) for _, chunk in islice(chunks, 1)]
        rest = (_patiently(partial(_part, ctx, chunk, records, at_once * number, signed)) for number, chunk in chunks)
        files_in_use = files.pop_all()
    return _closing(files_in_use, json_pair.packed(size, chain(begun, rest), kept, signed))


def _chunks(values: Iterable[str], size: int) -> Iterator[list[str]]:
    left = iter(values)
    while chunk := list(islice(left, size)):
        yield chunk


def _part(ctx: Context, hashes: Sequence[str], records: Records, first: int, signed: IO[bytes]) -> tuple[str, str]:
    """Return the lines of some workloads, of which the first is number ``first``, and of their records. Write the
    certificates of these to ``signed``."""
    modules, found = ctx.database.workloads.modules(hashes), list(records(hashes))
    texts = ctx.sandbox.export({key: modules[key] for key in hashes}, [record for record, _ in found], first)
    keys = _keys(ctx)
    signed.writelines(carried.line(each, keys).encode() for record, each in found if record.trace_json is not None)
    return texts.database_workload, texts.database_tuning_record


def _keys(ctx: Context) -> carried.Keys:
    return {key.id: key for key in ctx.database.signing_keys.published()}


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
    found, errors = carried.read(json_pair.unpack_certificates(body), _keys(ctx))
    certificates = {(each.workload_hash, each.trace_sha256, each.target): each for each in reversed(found)}
    ctx.database.workloads.import_(read.workloads, TVM_VERSION, user_name)
    classes = {
        target_json: ctx.database.devices.put(DeviceClass.imported(target_json, f"tvm {TVM_VERSION}"))
        for target_json in sorted({record.target_json for record in read.records})
    }
    records, signed_by = [], Counter[SignedBy]()
    for record in read.records:
        if record.trace_json is None:
            continue
        trace_sha256 = signatures.trace_digest(json.loads(record.trace_json))
        target = signatures.canonical(json.loads(record.target_json))
        certificate = certificates.get((record.workload_hash, trace_sha256, target))
        if certificate is not None:
            signed_by[certificate.signed_by] += 1
        records.append(
            ImportedRecord(
                workload_hash=record.workload_hash,
                device_class_id=classes[record.target_json],
                trace_json=record.trace_json,
                run_secs=tuple(record.run_secs),
                tvm_version=TVM_VERSION,
                certificate=None if certificate is None else certificate.certificate,
            )
        )
    count = ctx.database.records.import_(records)
    return schemas.ImportReport(
        workloads=len(read.workloads),
        imported=count.imported,
        duplicates=count.duplicates,
        errors=[*read.errors, *errors],
        signed_here=signed_by[SignedBy.SERVICE],
        signed_elsewhere=signed_by[SignedBy.OTHER],
    )

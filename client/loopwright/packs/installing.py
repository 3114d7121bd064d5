"""Installs a pack in a service: sends its bests as records with their certificates, which the service imports."""

from __future__ import annotations

import base64
import json
import struct
import tempfile
from collections.abc import Iterable
from pathlib import Path

from loopwright import schemas
from loopwright.errors import InvalidPack
from loopwright.packs.archive import Pack
from loopwright.packs.manifest import ShippedBest
from loopwright.results import archive
from loopwright.results.importing import import_pair
from loopwright.session.transport import Transport

_LENGTH = struct.Struct("<Q")
_ANY_HASH = "0"
"""In place of TVM's structural hash, which the service computes itself."""


def install(transport: Transport, import_path: str, pack: Pack, version: schemas.Version) -> schemas.ImportReport:
    """Import the bests of a pack, and return what the service reports. Known records are skipped.

    The service checks each certificate again, and replays each schedule on its function. What it takes is a record
    that was imported: it is certified once the service's own workers have raced it. Where the unscheduled program is
    the best, there is nothing to import.

    Raises:
        InvalidPack: the service has another version of TVM than the one that wrote the pack.
        CouldNotReach, ServiceError: as the requests do. A large pack is sent in parts; earlier parts stay stored.
    """
    if version.tvm != pack.manifest.tvm:
        raise InvalidPack(
            f"the pack was made with TVM {pack.manifest.tvm}, which alone can read it, and the service has TVM "
            f"{version.tvm}; get a pack for this version"
        )
    with tempfile.TemporaryDirectory(prefix="loopwright-pack-") as folder:
        _write_pair(Path(folder), pack.bests, pack)
        return import_pair(transport, import_path, Path(folder))


def _write_pair(folder: Path, shipped: Iterable[ShippedBest], pack: Pack) -> None:
    """Write bests as TVM's JSON pair, with the file of certificates beside it."""
    positions: dict[str, int] = {}
    workloads, records, certificates = [], [], []
    for each in shipped:
        best = each.best
        signed = best.certificate.signed
        if best.trace is None or signed is None:
            continue
        if best.workload_hash not in positions:
            positions[best.workload_hash] = len(positions)
            workloads.append(json.dumps([_ANY_HASH, _packed(each.module.data)]))
        samples = best.certificate.best_run_secs
        records.append(json.dumps([positions[best.workload_hash], [best.trace, samples, best.target, []]]))
        carried = schemas.CarriedCertificate(
            **signed.model_dump(), public_key=pack.keys[signed.key_id].public_key
        ).model_dump_json()
        certificates.append(carried)
    for name, lines in zip((*archive.MEMBERS, archive.CERTIFICATES), (workloads, records, certificates), strict=True):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _packed(module: str) -> str:
    """Return a module as TVM's JSON pair has it: base64 of its length and its text."""
    data = module.encode()
    return base64.b64encode(_LENGTH.pack(len(data)) + data).decode()

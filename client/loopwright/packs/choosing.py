"""Which bests of a service go into a pack, and the pack of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from loopwright import schemas
from loopwright.codegen.versions import TVM_VERSION
from loopwright.packs.archive import compressed, packed, write
from loopwright.packs.manifest import PackManifest, ShippedBest, machines_of
from loopwright.packs.signing import PackKey
from loopwright.results import evidence
from loopwright.session.transport import Transport
from loopwright.version import VERSION

_PAGE_SIZE = 200


@dataclass(frozen=True, slots=True)
class Choice:
    """The bests that go into a pack: those that meet every condition that is given."""

    workloads: Collection[str] | None = None
    """Only bests of the functions with these hashes."""
    device_class: str | None = None
    """Only bests of this device class."""
    text: str | None = None
    """Only bests of functions whose names contain this text, in any case."""

    def has(self, best: schemas.Best) -> bool:
        """Return whether a best goes into the pack. One that no longer holds does not."""
        return (
            best.certificate.regressed_at is None
            and (self.workloads is None or best.workload_hash in self.workloads)
            and (self.device_class is None or best.device_class == self.device_class)
            and (self.text is None or self.text.lower() in best.name.lower())
        )


def export(
    transport: Transport, api: str, path: Path, choice: Choice, *, name: str, creator: str, licence: str, key: PackKey
) -> PackManifest:
    """Write the pack of a service's bests, and return its manifest. Bests of another version of TVM are left out.

    Raises:
        ValueError: there is no such best, or there are too many for a pack.
        WrongCertificate: a certificate is not what the service signed.
        CouldNotReach, ServiceError: as the requests do.
    """
    keys = list(transport.pages(schemas.SigningKey, f"{api}/keys"))
    known = evidence.by_id(keys)
    chosen = [best for best in _listed(transport, api, choice) if choice.has(best)]
    signed = [(best, evidence.check_best(best, known)) for best in chosen]
    signed = [(best, document) for best, document in signed if document.tvm_version == TVM_VERSION]
    if not signed:
        raise ValueError("no certified best of this choice is known; tune the functions first, or choose others")
    signed.sort(key=lambda each: (each[0].workload_hash, each[0].device_class))
    modules = {each.workload_hash: _module(transport, api, each.workload_hash) for each, _ in signed}
    shipped = [ShippedBest(best=best, module=modules[best.workload_hash]) for best, _ in signed]
    used = {each.key_id for best, _ in signed for each in (best.certificate.signed, best.certificate.verdict) if each}
    stored, files = compressed(packed(shipped, [each for each in keys if each.id in used]))
    manifest = PackManifest(
        name=name,
        creator=creator,
        licence=licence,
        created_at=datetime.now(UTC),
        loopwright=VERSION,
        tvm=TVM_VERSION,
        codegen_version=max(best.codegen_version for best, _ in signed),
        machines=machines_of(document for _, document in signed),
        functions=len(modules),
        bests=len(signed),
        files=files,
    )
    write(path, manifest, stored, key)
    return manifest


def _listed(transport: Transport, api: str, choice: Choice) -> Iterator[schemas.Best]:
    if choice.workloads is None:
        yield from transport.pages(schemas.Best, f"{api}/bests", page_size=_PAGE_SIZE)
    else:
        for each in sorted(choice.workloads):
            yield from transport.pages(schemas.Best, f"{api}/bests", workload_hash=each, page_size=_PAGE_SIZE)


def _module(transport: Transport, api: str, workload_hash: str) -> schemas.ModulePayload:
    return transport.get(schemas.ModulePayload, f"{api}/workloads/{quote(workload_hash)}/module")

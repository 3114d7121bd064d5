"""The manifest of a pack, ``manifest.json``: what is signed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from loopwright import schemas
from loopwright.codegen import signatures

FORMAT = 1
"""Of packs that this version writes, and the newest that it reads."""
BESTS = "bests.jsonl.gz"
"""A best on each line, as `ShippedBest`."""
KEYS = "keys.json.gz"
"""The public keys that have signed the certificates, as ``GET /keys`` published them when the pack was made."""
PARTS = (BESTS, KEYS)


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ShippedBest(Part):
    """A certified best, and the unscheduled function that it is of."""

    best: schemas.Best
    module: schemas.ModulePayload


class File(Part):
    """A file of the pack, as it is stored, and how long it is without compression."""

    sha256: str
    bytes: int = Field(ge=0)
    unpacked_bytes: int = Field(ge=0)


class PackMachine(Part):
    """A kind of machine on which bests of the pack were certified."""

    device_class: str
    """Id of the device class."""
    target: dict[str, Any]
    """TVM's target, as its JSON."""
    model: str
    """Model of the CPU or GPU."""
    features: tuple[str, ...]
    """Instruction sets that code may use."""
    cores: int
    """Physical cores."""
    threads: int
    """Threads that functions use."""
    runtime: str
    """Versions of the runtime that ran the races."""


class PackManifest(Part):
    """What a pack is, who made it, and the digests of its files."""

    kind: Literal["loopwright-pack"] = "loopwright-pack"
    """What is signed, so that no signature of another document is one of a pack."""
    format: Literal[1] = 1
    """Version of the pack's form."""
    name: str
    """Name of the pack."""
    creator: str
    """Who made it, in the creator's words."""
    licence: str
    """Under which licence it may be used: an SPDX expression, such as ``Apache-2.0``."""
    created_at: datetime
    """When it was made."""
    loopwright: str
    """Version of Loopwright that made it."""
    tvm: str
    """Version of TVM that wrote its traces, which alone can read them."""
    codegen_version: int
    """The version of ``loopwright.codegen`` that applying all of its traces needs."""
    machines: tuple[PackMachine, ...]
    """Where its bests were certified."""
    functions: int
    """Different functions of which it has bests."""
    bests: int
    """Bests: one for each function and kind of machine."""
    files: dict[str, File]
    """Its other files."""


def machines_of(documents: Iterable[schemas.Evidence]) -> tuple[PackMachine, ...]:
    """Return the machines of certificates, each once, by id of the device class."""
    found = {
        each.device_class: PackMachine(
            device_class=each.device_class,
            target=each.target,
            model=each.machine.model,
            features=tuple(each.machine.features),
            cores=each.machine.cores,
            threads=each.machine.threads,
            runtime=each.runtime,
        )
        for each in documents
    }
    return tuple(found[key] for key in sorted(found))


def signed_text(manifest: PackManifest) -> str:
    """Return the text of a manifest, which is signed as it stands in the pack."""
    return signatures.canonical(manifest.model_dump(mode="json"))

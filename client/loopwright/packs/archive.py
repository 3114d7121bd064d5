"""The file of a pack: a tar of the manifest, its signature and compressed parts, in this order.

It is read from the front and stops at the first wrong byte: nothing is decompressed before the signature of the
manifest, and then the digest of the part, were found right. No member is written to the file system.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from loopwright import schemas
from loopwright.codegen import signatures
from loopwright.errors import InvalidPack, WrongCertificate, first_line
from loopwright.packs.manifest import BESTS, FORMAT, KEYS, PARTS, File, PackManifest, ShippedBest, signed_text
from loopwright.packs.signing import Keys, PackKey, PackSignature, sign, signature_of
from loopwright.results import evidence

MANIFEST, SIGNATURE = "manifest.json", "signature.json"
MAX_BYTES = 256 * 2**20
"""Of a pack. Some 50,000 bests."""
MAX_UNPACKED_BYTES = 2**30
"""Of a part without compression."""
_HEAD_BYTES = {MANIFEST: 2**20, SIGNATURE: 2**12}
_KEYS = TypeAdapter(list[schemas.SigningKey])
_GZIP = 16 + zlib.MAX_WBITS
"""Tells zlib to read gzip's form."""


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack that was read: its digests and the signatures in it are right.

    ``is_known`` says whether the key of its manifest is one that the reader gave.
    """

    manifest: PackManifest
    signature: PackSignature
    is_known: bool
    bests: tuple[ShippedBest, ...]
    keys: Keys
    """Of the services that certified the bests, as the pack says."""


def packed(bests: Iterable[ShippedBest], keys: Sequence[schemas.SigningKey]) -> dict[str, bytes]:
    """Return the parts of a pack without compression."""
    lines = (f"{signatures.canonical(each.model_dump(mode='json'))}\n" for each in bests)
    listed = [key.model_dump(mode="json") for key in keys]
    return {BESTS: "".join(lines).encode(), KEYS: signatures.canonical(listed).encode()}


def compressed(parts: Mapping[str, bytes]) -> tuple[dict[str, bytes], dict[str, File]]:
    """Return parts as they are stored, and what the manifest says of them. Equal parts become equal bytes."""
    stored = {name: gzip.compress(data, mtime=0) for name, data in parts.items()}
    files = {
        name: File(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data), unpacked_bytes=len(parts[name]))
        for name, data in stored.items()
    }
    return stored, files


def write(path: Path, manifest: PackManifest, stored: Mapping[str, bytes], key: PackKey) -> None:
    """Write a pack, signed with a key. Raise ValueError for one that is too large to be read."""
    text = signed_text(manifest)
    members = {
        MANIFEST: text.encode(),
        SIGNATURE: sign(text, key).model_dump_json().encode(),
        **{name: stored[name] for name in PARTS},
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    unpacked = max(file.unpacked_bytes for file in manifest.files.values())
    if buffer.tell() > MAX_BYTES or unpacked > MAX_UNPACKED_BYTES:
        raise ValueError(f"{manifest.bests} bests are too many for a pack; make several, by job or device class")
    path.write_bytes(buffer.getvalue())


def read(path: Path, keys: Keys | None = None) -> Pack:
    """Return a pack whose digests and signatures are right.

    Args:
        path: the file.
        keys: public keys, one of which must have signed it; None to read a pack of any key, of which then nobody
            knows whose it is.

    Raises:
        InvalidPack: it is none, it was changed or cut off, its key is unknown, revoked or retired, it has a newer form,
            or a certificate in it is not what its service signed.
    """
    if path.stat().st_size > MAX_BYTES:
        raise InvalidPack(f"{path} has more than {MAX_BYTES} bytes, which is no pack")
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
            members = _Members(tar)
            text, signature = members.take(MANIFEST), signature_of(members.take(SIGNATURE))
            _check_signature(text, signature, keys)
            manifest = _manifest(text)
            _check_date(manifest, signature, keys)
            parts = {name: _unpacked(name, members, manifest.files[name]) for name in PARTS}
            members.end()
        shipped = tuple(_bests(parts[BESTS]))
        return Pack(manifest, signature, keys is not None, shipped, _checked(manifest, shipped, parts[KEYS]))
    except InvalidPack as error:
        raise InvalidPack(f"{path}: {error}") from None
    except (tarfile.TarError, EOFError, zlib.error, ValueError, ArithmeticError, RecursionError) as error:
        raise InvalidPack(f"{path} is no pack, or is cut off: {first_line(error)}") from error


class _Members:
    """The members of a tar in their order, of which only expected ones are read."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar

    def take(self, name: str, size: int | None = None) -> bytes:
        """Return the content of the next member. Raise InvalidPack for another one than a file of this name and size.

        Without a size, it is one of the head, which has a limit.
        """
        member = self._tar.next()
        if member is None:
            raise InvalidPack(f"it is cut off: it has no {name}")
        if member.name != name or not member.isreg() or member.issparse():
            raise InvalidPack(f"it has {member.name[:100]!r} in place of the file {name}")
        if member.size > _HEAD_BYTES[name] if size is None else member.size != size:
            raise InvalidPack(f"its {name} has {member.size} bytes, and may have {size or _HEAD_BYTES[name]}")
        file = self._tar.extractfile(member)
        assert file is not None, "a regular file has content"
        data = file.read()
        if len(data) != member.size:
            raise InvalidPack(f"it is cut off within {name}")
        return data

    def end(self) -> None:
        """Raise InvalidPack if there is another member."""
        member = self._tar.next()
        if member is not None:
            raise InvalidPack(f"it has one file too many, {member.name[:100]!r}")


def _check_signature(text: bytes, signature: PackSignature, keys: Keys | None) -> None:
    if signatures.key_id(signature.public_key) != signature.key_id:
        raise InvalidPack(f"its key has another id than {signature.key_id[:64]}")
    public_key = signature.public_key
    if keys is not None:
        key = keys.get(signature.key_id)
        if key is None:
            raise InvalidPack(
                f"it is signed with the key {signature.key_id}, which is none of {', '.join(keys) or 'no keys'}. If "
                "you trust its creator, get the creator's keys ('loopwright key show' prints them), and give those"
            )
        if key.revoked_at is not None:
            raise InvalidPack(f"its key {key.id} was revoked at {key.revoked_at}, so anybody may have signed it")
        public_key = key.public_key
    if not signatures.is_signed(text.decode(), signature.signature, public_key):
        raise InvalidPack(f"its manifest was changed: the signature is not that of the key {signature.key_id}")


def _manifest(text: bytes) -> PackManifest:
    fields = json.loads(text)
    form = fields.get("format") if isinstance(fields, dict) else None
    if isinstance(form, int) and form > FORMAT:
        raise InvalidPack(f"it has the form {form}, and this version reads {FORMAT}; upgrade loopwright")
    try:
        manifest = PackManifest.model_validate_json(text, extra="ignore")
    except ValidationError as error:
        raise InvalidPack(f"its manifest is not one that this version can read ({first_line(error)})") from None
    if sorted(manifest.files) != sorted(PARTS):
        raise InvalidPack(f"its manifest lists {', '.join(manifest.files)[:100]}, and not {' and '.join(PARTS)}")
    return manifest


def _check_date(manifest: PackManifest, signature: PackSignature, keys: Keys | None) -> None:
    key = None if keys is None else keys[signature.key_id]
    if key is not None and key.retired_at is not None and manifest.created_at > key.retired_at:
        raise InvalidPack(f"it was made after its key {key.id} was retired")


def _unpacked(name: str, members: _Members, file: File) -> bytes:
    """Return a part without compression. Raise InvalidPack if it is not what the manifest says."""
    if file.unpacked_bytes > MAX_UNPACKED_BYTES:
        raise InvalidPack(f"its {name} says to have {file.unpacked_bytes} bytes, over the limit {MAX_UNPACKED_BYTES}")
    stored = members.take(name, file.bytes)
    if hashlib.sha256(stored).hexdigest() != file.sha256:
        raise InvalidPack(f"its {name} was changed: it is not the one that was signed")
    reader = zlib.decompressobj(_GZIP)
    data = reader.decompress(stored, file.unpacked_bytes + 1)
    if len(data) != file.unpacked_bytes or not reader.eof or reader.unused_data:
        raise InvalidPack(f"its {name} does not unpack to the {file.unpacked_bytes} bytes that were signed")
    return data


def _bests(data: bytes) -> Iterator[ShippedBest]:
    for number, line in enumerate(data.splitlines(), 1):
        try:
            yield ShippedBest.model_validate_json(line, extra="ignore")
        except ValidationError as error:
            raise InvalidPack(
                f"its best {number} is not one that this version can read ({first_line(error)})"
            ) from None


def _checked(manifest: PackManifest, shipped: Sequence[ShippedBest], data: bytes) -> Keys:
    """Return the keys of the certificates. Raise InvalidPack if one is not what its key has signed."""
    if len(shipped) != manifest.bests:
        raise InvalidPack(f"it has {len(shipped)} bests, and its manifest says {manifest.bests}")
    try:
        keys = evidence.by_id(_KEYS.validate_json(data, extra="ignore"))
        for each in shipped:
            evidence.check_best(each.best, keys)
    except (WrongCertificate, ValueError) as error:
        raise InvalidPack(str(error)) from error
    return keys

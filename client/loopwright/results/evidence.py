"""Verification of certificates and rechecks: the signature, and that the signed document is about what is used."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from loopwright import schemas
from loopwright.codegen import signatures
from loopwright.errors import WrongCertificate, first_line

Keys = Mapping[str, schemas.SigningKey]
"""Public keys by their ids."""

_OF_CERTIFICATE: dict[str, Callable[[schemas.Evidence], Any]] = {
    "id": lambda signed: signed.id,
    "created_at": lambda signed: signed.created_at,
    "inputs": lambda signed: signed.inputs,
    "rtol": lambda signed: signed.rtol,
    "atol": lambda signed: signed.atol,
    "max_abs_error": lambda signed: signed.max_abs_error,
    "max_rel_error": lambda signed: signed.max_rel_error,
    "rounds": lambda signed: len(signed.best_run_secs),
    "baseline_run_secs": lambda signed: signed.baseline_run_secs,
    "best_run_secs": lambda signed: signed.best_run_secs,
    "baseline_us": lambda signed: _median_us(signed.baseline_run_secs),
    "best_us": lambda signed: _median_us(signed.best_run_secs),
    "speedup": lambda signed: signed.interval.value,
    "interval": lambda signed: signed.interval,
    "grade": lambda signed: signed.grade,
    "contenders": lambda signed: signed.contenders,
    "runner_up": lambda signed: signed.runner_up,
    "sandbox": lambda signed: signed.sandbox,
    "device_state": lambda signed: signed.device_state,
}
"""What the fields of a certificate must be, besides those that rechecks change."""
_OF_RECHECK = ("checked_at", "conditions", "regressed_at")
"""Fields of a certificate that its last recheck has set."""
_Document = TypeVar("_Document", bound=BaseModel)
_OF_RECORD: dict[str, Callable[[schemas.Evidence], Any]] = {
    "workload_hash": lambda signed: signed.workload_hash,
    "target": lambda signed: signed.target,
    "device_class": lambda signed: signed.device_class,
    "codegen_version": lambda signed: signed.codegen_version,
    "is_baseline": lambda signed: signed.trace_sha256 is None,
}
_OF_BEST = _OF_RECORD | {field: _OF_CERTIFICATE[field] for field in ("baseline_us", "best_us", "speedup", "created_at")}
_ROUNDING = 1e-9
"""Of medians that the service has computed in another unit."""


def by_id(keys: Iterable[schemas.SigningKey]) -> dict[str, schemas.SigningKey]:
    """Return keys by their ids. Raises WrongCertificate for a key that has the id of another."""
    found = {key.id: key for key in keys}
    for key in found.values():
        if _id_of(key) != key.id:
            raise WrongCertificate(
                f"the key {key.id} has another id than its bytes; ask the service's admin for its keys"
            )
    return found


def read_keys(path: Path) -> dict[str, schemas.SigningKey]:
    """Return the keys in a file that ``loopwright key list --json`` wrote. Raises ValueError for another file."""
    try:
        return by_id(TypeAdapter(list[schemas.SigningKey]).validate_json(path.read_bytes()))
    except ValidationError as error:
        raise ValueError(
            f"{path} is no list of keys ({first_line(error)}); write it with 'loopwright key list --json'"
        ) from error


def read_certified(path: Path) -> schemas.Best | schemas.RecordDetail:
    """Return the best or the record in a JSON file of the command line or the REST interface.

    Raises ValueError for another file.
    """
    for kind in (schemas.Best, schemas.RecordDetail):
        try:
            return kind.model_validate_json(path.read_bytes(), extra="ignore")
        except ValidationError:
            continue
    raise ValueError(
        f"{path} has no certificate; write it with 'loopwright schedule best --json' or 'loopwright record show --json'"
    )


def check_certificate(certificate: schemas.Certificate, keys: Keys, name: str) -> schemas.Evidence:
    """Return the signed document of the certificate of the function ``name``.

    Raises WrongCertificate if the certificate has no signature, none by one of the keys, or other figures than the
    document, or if that is so of its last recheck.
    """
    evidence = _signed(schemas.Evidence, certificate.signed, keys, name, lambda read: read.created_at)
    _compare(name, certificate, evidence, _OF_CERTIFICATE)
    _check_verdict(certificate, evidence, keys, name)
    _compare_library(name, certificate.library, evidence.library)
    rejected = {each.candidate: each.kind for each in certificate.rejected}
    if rejected != evidence.rejected:
        raise _wrong(name, "its rejected are not those that were signed")
    return evidence


def check_best(best: schemas.Best | schemas.RecordDetail, keys: Keys) -> schemas.Evidence:
    """Return the signed document of a best, of a certified record, or of a record that was imported with a certificate.

    Raises WrongCertificate as `check_certificate`, and if the document is about another function, target, device class
    or trace.
    """
    if best.certificate is None:
        return _check_imported(best, keys)
    evidence = check_certificate(best.certificate, keys, best.name)
    _compare(best.name, best, evidence, _OF_BEST if isinstance(best, schemas.Best) else _OF_RECORD)
    if signatures.trace_digest(best.trace) != evidence.trace_sha256:
        raise _wrong(best.name, "it is for another schedule (trace)")
    return evidence


def _check_imported(record: schemas.RecordDetail, keys: Keys) -> schemas.Evidence:
    """The device class of an imported record is not that of the machine that was measured."""
    if record.imported_certificate is None:
        raise WrongCertificate(f"{record.name} was measured and not certified")
    signed = record.imported_certificate.signed
    evidence = _signed(schemas.Evidence, signed, keys, record.name, lambda read: read.created_at)
    _compare(record.name, record, evidence, {field: _OF_RECORD[field] for field in ("workload_hash", "target")})
    if signatures.trace_digest(record.trace) != evidence.trace_sha256:
        raise _wrong(record.name, "it is for another schedule (trace)")
    return evidence


def check_recheck(recheck: schemas.Recheck, keys: Keys) -> None:
    """Raise WrongCertificate if a recheck has a result that is not what was signed."""
    if recheck.result is None:
        return
    verdict = _verdict(recheck.signed, keys, recheck.name)
    about = (verdict.certificate_id, verdict.workload_hash, verdict.result)
    if about != (recheck.certificate_id, recheck.workload_hash, recheck.result):
        raise _wrong(recheck.name, "its recheck says something else than what was signed")


def _check_verdict(certificate: schemas.Certificate, evidence: schemas.Evidence, keys: Keys, name: str) -> None:
    """Check what the last recheck has set; without one, the certificate is as it was issued."""
    if certificate.verdict is None:
        signed: dict[str, Any] = dict.fromkeys(_OF_RECHECK) | {"conditions": f"{evidence.runtime}, {evidence.system}"}
    else:
        verdict = _verdict(certificate.verdict, keys, name)
        if (verdict.certificate_id, verdict.workload_hash) != (evidence.id, evidence.workload_hash):
            raise _wrong(name, "its recheck is of another certificate")
        signed = {field: getattr(verdict, field) for field in _OF_RECHECK}
    for field in _OF_RECHECK:
        if getattr(certificate, field) != signed[field]:
            raise _wrong(name, f"its {field} is {getattr(certificate, field)}, and another was signed")


def _verdict(signed: schemas.SignedDocument | None, keys: Keys, name: str) -> schemas.RecheckEvidence:
    return _signed(schemas.RecheckEvidence, signed, keys, name, lambda read: read.checked_at)


def _signed(
    kind: type[_Document],
    signed: schemas.SignedDocument | None,
    keys: Keys,
    name: str,
    signed_at: Callable[[_Document], datetime],
) -> _Document:
    """Return a signed document of the function ``name``. Raises WrongCertificate if none of the keys has signed it."""
    if signed is None:
        raise WrongCertificate(f"the certificate of {name} is not signed; upgrade the service that issued it")
    key = keys.get(signed.key_id)
    if key is None:
        raise WrongCertificate(
            f"the certificate of {name} is signed with the key {signed.key_id}, which is none of "
            f"{', '.join(keys) or 'no keys'}; tune {name} again, or get the keys of the service that signed it"
        )
    if key.revoked_at is not None:
        raise WrongCertificate(
            f"the certificate of {name} is signed with the key {key.id}, which was revoked at {key.revoked_at}: others "
            "may have it. What the service had, it signed again: get the certificate or make the package again"
        )
    if not signatures.is_signed(signed.document, signed.signature, key.public_key):
        raise _wrong(name, f"its signature is not that of the key {key.id}")
    try:
        document = kind.model_validate_json(signed.document)
    except ValidationError as error:
        raise WrongCertificate(
            f"the certificate of {name} has a form that this version of the client cannot read "
            f"({first_line(error)}); upgrade the client"
        ) from error
    if key.retired_at is not None and signed_at(document) > key.retired_at:
        raise _wrong(name, f"it was issued after its key {key.id} was retired")
    return document


def _compare(
    name: str, shown: object, evidence: schemas.Evidence, fields: Mapping[str, Callable[[schemas.Evidence], Any]]
) -> None:
    for field, of in fields.items():
        here, there = getattr(shown, field), of(evidence)
        same = math.isclose(here, there, rel_tol=_ROUNDING) if isinstance(there, float) else here == there
        if not same:
            raise _wrong(name, f"its {field} is {json.dumps(here, default=str):.80}, and another was signed")


def _compare_library(name: str, shown: schemas.Library | None, signed: schemas.LibrarySamples | None) -> None:
    here = None if shown is None else (shown.name, shown.run_secs)
    there = None if signed is None else (signed.name, signed.run_secs)
    if here != there or (shown is not None and not math.isclose(shown.us, _median_us(shown.run_secs))):
        raise _wrong(name, "its library is not what was signed")


def _median_us(run_secs: list[float]) -> float:
    return statistics.median(run_secs) * 1e6


def _id_of(key: schemas.SigningKey) -> str | None:
    try:
        return signatures.key_id(key.public_key)
    except ValueError:
        return None


def _wrong(name: str, reason: str) -> WrongCertificate:
    return WrongCertificate(
        f"the certificate of {name} does not hold: {reason}. It was changed after it was signed, in the service's "
        "database or on the way; nothing was compiled with it. Tell the service's admin, and tune the function again"
    )

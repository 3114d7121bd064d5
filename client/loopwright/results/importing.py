"""Sends TVM's JSON pair to the service, in parts."""

from __future__ import annotations

from pathlib import Path

from loopwright import schemas
from loopwright.results import archive
from loopwright.session.transport import Transport, parse


def import_pair(transport: Transport, path: str, directory: Path) -> schemas.ImportReport:
    """POST the pair in ``directory`` to ``path``, and return what the service reports of all parts.

    Raises FileNotFoundError if one of the pair is missing, and CouldNotReach or ServiceError: parts before are stored.
    """
    total = schemas.ImportReport(workloads=0, imported=0, duplicates=0, errors=[])
    for part in archive.parts(directory):
        headers = {"Content-Type": "application/x-tar"}
        response = transport.request("POST", path, content=part.tar, headers=headers, repeatable=True)
        total = _together(total, parse(schemas.ImportReport, response), part.repeated)
    return total


def _together(total: schemas.ImportReport, report: schemas.ImportReport, repeated: int | None) -> schemas.ImportReport:
    """Add a report, of whose workloads one may have been in the report before."""
    refused = None if repeated is None else f"{archive.MEMBERS[0]} line {repeated + 1}:"
    counted = refused is not None and not any(error.startswith(refused) for error in report.errors)
    return schemas.ImportReport(
        workloads=total.workloads + report.workloads - counted,
        imported=total.imported + report.imported,
        duplicates=total.duplicates + report.duplicates,
        errors=list(dict.fromkeys([*total.errors, *report.errors])),
        signed_here=total.signed_here + report.signed_here,
        signed_elsewhere=total.signed_elsewhere + report.signed_elsewhere,
    )

"""``loopwright package`` and ``loopwright verify``: a tuned model to ship, and proof of it where it lies."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli.options import ExactMath, Extents, Json, Math, ModelFile, Target, connect, to_model
from loopwright.cli.output import print_json, print_line, print_table
from loopwright.packaging.manifest import Manifest
from loopwright.packaging.verified import Verified
from loopwright.results.tables import Column
from loopwright.results.units import latency, plural

_COLUMNS = (
    Column("function", folds=True),
    Column("result"),
    Column("error", is_number=True),
    Column("here", is_number=True),
    Column("certified", is_number=True),
    Column("over unscheduled", is_number=True),
    Column("why", folds=True),
)


def package(
    context: typer.Context,
    model: ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write; it must be empty or not exist.")],
    target: Target = "auto",
    extents: Extents = None,
    exact_math: ExactMath = False,
    math: Math = "fp32",
    name: Annotated[str | None, typer.Option(help="Name of the model; by default the name of the file.")] = None,
    as_json: Json = False,
) -> None:
    """Write a model with its best schedules to a folder that runs without Loopwright and without TVM's compiler."""
    with connect(context) as client:
        folder = client.package(to_model(model, extents, exact_math, math), output, target, name=name)
        report = client.last_report
    assert report is not None
    if as_json:
        functions = [{"name": each.name, "outcome": each.outcome} for each in report.functions]
        print_json({"folder": str(folder), "functions": functions})
    else:
        print_line(str(report))
        print_line(f"written to {folder}; `loopwright verify {folder}` checks it, on any machine that it is copied to")


def verify(
    context: typer.Context,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="Folder that `package` wrote, or a file of `schedule best --json` or `record show --json`.",
            show_default=False,
        ),
    ],
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Samples per function.")] = 10,
    keys: Annotated[
        Path | None,
        typer.Option(help="File of `key list --json`: certificates must be signed with one of its keys."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Repeat a package's checks and timings on this machine; exit status 1 if a result is wrong or slower than untuned.

    This needs no service and no compiler. Of a file, the signature of the certificate is checked, with --keys or else
    with the keys of the service.
    """
    if path.is_file():
        _verify_certificate(context, path, keys, as_json)
        return
    # Imported here, because the other commands need no NumPy.
    from loopwright.packaging.verify import verify as verified

    found = verified(path, rounds, keys)
    parts = (found.model, *found.functions)
    if as_json:
        model, *functions = (asdict(each) for each in parts)
        print_json({"holds": found.holds, "model": model, "functions": functions})
    else:
        print_table(_COLUMNS, [_row(each) for each in parts])
        threads = plural(found.manifest.threads, "thread")
        print_line(f"{found.manifest.name}, tuned for {found.manifest.target} with {threads}")
        print_line(_signatures(found.manifest, keys))
    if not found.holds:
        raise typer.Exit(1)


def _verify_certificate(context: typer.Context, path: Path, keys: Path | None, as_json: bool) -> None:
    from loopwright.results import evidence

    certified = evidence.read_certified(path)
    if keys is not None:
        known = evidence.read_keys(keys)
    else:
        with connect(context) as client:
            known = evidence.by_id(client.signing_keys())
    signed = evidence.check_best(certified, known)
    if as_json:
        print_json(signed)
    else:
        print_line(f"the certificate {signed.id} of {certified.name} holds: it is signed, and for this schedule")


def _signatures(manifest: Manifest, keys: Path | None) -> str:
    """Return what is known of the signatures of a package's certificates, which were checked if there are keys."""
    signed = [each.certificate.signed for each in manifest.functions if each.certificate is not None]
    ids = ", ".join(sorted({"none" if each is None else each.key_id for each in signed})) or "none"
    if keys is None:
        return f"keys of its certificates: {ids}; --keys FILE checks the signatures (`loopwright key list --json`)"
    return f"certificates signed with the keys in {keys}: {ids}"


def _row(found: Verified) -> tuple[str, ...]:
    return (
        found.name or "(the whole model)",
        found.state,
        "-" if found.error is None else f"{found.error:.1e}",
        latency(found.us),
        latency(found.certified_us),
        "-" if found.speedup is None else "{:.2f} ({:.2f} to {:.2f})".format(*found.speedup),
        found.reason or "",
    )

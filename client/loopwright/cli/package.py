"""``loopwright package`` and ``loopwright verify``: a tuned model to ship, and proof of it where it lies."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli.options import ExactMath, Extents, Json, Math, ModelFile, Target, connect, to_model
from loopwright.cli.output import print_json, print_line, print_table
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
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder that `package` wrote.", show_default=False)],
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Samples per function.")] = 10,
    as_json: Json = False,
) -> None:
    """Repeat a package's checks and timings on this machine; exit status 1 if a result is wrong or slower than untuned.

    It needs no service and no compiler.
    """
    # Imported here, because the other commands need no NumPy.
    from loopwright.packaging.verify import verify as verified

    found = verified(folder, rounds)
    parts = (found.model, *found.functions)
    if as_json:
        model, *functions = (asdict(each) for each in parts)
        print_json({"holds": found.holds, "model": model, "functions": functions})
    else:
        print_table(_COLUMNS, [_row(each) for each in parts])
        threads = plural(found.manifest.threads, "thread")
        print_line(f"{found.manifest.name}, tuned for {found.manifest.target} with {threads}")
    if not found.holds:
        raise typer.Exit(1)


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

"""``loopwright schedule``: use what was found."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from loopwright.cli.following import waiting
from loopwright.cli.options import (
    ExactMath,
    Extents,
    Json,
    ManyExtents,
    Math,
    ModelFile,
    Target,
    connect,
    to_model,
    to_write,
)
from loopwright.cli.output import print_json, print_line, print_table
from loopwright.cli.views import show_best, show_plan
from loopwright.client import Client
from loopwright.codegen.host.threads import environment
from loopwright.model import Tune
from loopwright.results.tables import RECHECKS, titled
from loopwright.results.units import ratio

app = typer.Typer(help="Look up, apply and build the best schedules.", no_args_is_help=True)

Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write.", callback=to_write)]


@app.command()
def best(
    context: typer.Context,
    workload: Annotated[str, typer.Argument(help="A workload's hash, or a file with one function.")],
    target: Target = "auto",
    extents: Extents = None,
    exact_math: ExactMath = False,
    math: Math = "fp32",
    as_json: Json = False,
) -> None:
    """Show the certified best schedule of a workload; exit status 1 if none is known."""
    with connect(context) as client:
        is_hash = re.fullmatch(r"[0-9a-f]{32}", workload) is not None
        found = client.best(workload if is_hash else to_model(workload, extents, exact_math, math), target)
    if found is None:
        print_line("null" if as_json else "no certified best is known for it on this target")
        raise typer.Exit(1)
    if as_json:
        print_json(found)
    else:
        show_best(found)


@app.command()
def recheck(
    context: typer.Context,
    workloads: Annotated[list[str], typer.Argument(metavar="WORKLOAD...", help="Hashes of workloads.")],
    target: Target = "auto",
    as_json: Json = False,
) -> None:
    """Race the bests of workloads again; exit status 1 if one no longer holds, or nothing could be measured."""
    with connect(context) as client:
        job = client.recheck(workloads, target)
        with waiting(job, is_told=not as_json):
            job.wait(progress=not as_json)
        found = job.rechecks()
    if as_json:
        print_json(found)
    else:
        print_table(RECHECKS.columns, [RECHECKS.row(each) for each in found])
    if job.state != "succeeded":
        print_line(f"the job {job.id} {job.state}: {job.error or ''}", error=True)
    if job.state != "succeeded" or any(
        each.result and each.result.verdict in ("regression", "failed") for each in found
    ):
        raise typer.Exit(1)


@app.command()
def apply(
    context: typer.Context,
    model: ModelFile,
    target: Target = "auto",
    extents: Extents = None,
    exact_math: ExactMath = False,
    math: Math = "fp32",
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Apply the best schedules, and write TVMScript to standard output or a .py file, or TVM's JSON to a .json file."""
    with connect(context) as client:
        applied = client.apply(to_model(model, extents, exact_math, math), target)
        report = _report(client)
    text = _as_json(applied) if output and output.suffix == ".json" else applied.script()
    if output:
        output.write_text(text, encoding="utf-8")
    if as_json:
        print_json({**report, "output": str(output) if output else None, "script": applied.script()})
        return
    if not output:
        print(text)
    # The program may go on to another command: what is said about it stands apart from it.
    _say(client, output, error=output is None)


@app.command()
def compile(
    context: typer.Context,
    model: ModelFile,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Shared library (.so) or archive (.tar) to write.", callback=to_write),
    ],
    target: Target = "auto",
    extents: ManyExtents = None,
    exact_math: ExactMath = False,
    math: Math = "fp32",
    lock: Annotated[
        Path | None, typer.Option(help="A file of 'loopwright lock': build with its bests, without a service.")
    ] = None,
    tune: Annotated[
        Tune | None,
        typer.Option(help="instant: schedule unknown functions by their rules, checked here; needs no service."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Build a program with the best schedules into a library that TVM's runtime can load."""
    with connect(context) as client:
        built = client.compile(to_model(model, extents, exact_math, math), target, lock=lock, tune=tune)
        report = _report(client)
        if client.last_plan is not None:
            show_plan(client.last_plan)
    # Imported here, because the other commands need no TVM.
    from loopwright.packaging.exporting import export_library

    export_library(built, output, target)
    if as_json:
        print_json({**report, "output": str(output)})
    else:
        _say(client, output)
        assert client.last_report is not None
        for threads in client.last_report.threads[-1:]:
            variables = " ".join(f"{name}={value}" for name, value in environment(threads).items())
            print_line(f"run it with {variables} in the environment, as the bests were certified")


def _as_json(mod: Any) -> str:
    # Imported here, because the other commands need no TVM.
    from loopwright.codegen.serialization import module_to_json

    return module_to_json(mod)


def _report(client: Client) -> dict[str, Any]:
    assert client.last_report is not None
    functions = []
    for function in client.last_report.functions:
        best = function.best.model_dump(mode="json") if function.best else None
        functions.append({**asdict(function), "best": best})
    return {"functions": functions, "served": [asdict(each) for each in client.last_report.served]}


def _say(client: Client, output: Path | None, error: bool = False) -> None:
    assert client.last_report is not None
    for function in client.last_report.functions:
        best = function.best
        gain = "" if best is None else f", {ratio(best.speedup, best.certificate.interval)}"
        if function.outcome == "predicted":
            gain = ", not certified"
        print_line(f"{titled(function)}: {function.outcome}{gain}", error)
    if output:
        print_line(f"written to {output}")

"""``loopwright check``: whether a model became slower, for continuous integration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli.following import waiting
from loopwright.cli.options import (
    ExactMath,
    Json,
    ManyExtents,
    Math,
    ModelFile,
    Target,
    connect,
    default_name,
    to_model,
    to_write,
)
from loopwright.cli.output import print_json, print_line, print_table
from loopwright.errors import CheckFailed, InvalidRequest
from loopwright.jobs.check_result import CheckResult, gate_against, write_reference
from loopwright.jobs.submit_options import SubmitOptions
from loopwright.results.tables import GATE


def _share(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is not of the form 3% or 0.03", param_hint="--max-slowdown")
    return float(found[1]) / (100 if found[2] else 1)


def check(
    context: typer.Context,
    model: ModelFile,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|JOB|NAME", help="The reference: a file that --record wrote, a job's id, or its name."
        ),
    ] = None,
    max_slowdown: Annotated[
        str, typer.Option(metavar="SHARE", help="How much slower the model may be: 3% or 0.03.")
    ] = "3%",
    target: Target = "auto",
    extents: ManyExtents = None,
    exact_math: ExactMath = False,
    math: Math = "fp32",
    max_trials: Annotated[
        int, typer.Option(min=1, help="Maximum number of candidates to measure for new functions.")
    ] = 64,
    max_seconds: Annotated[float | None, typer.Option(min=0, help="Seconds that the job may take.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the job; by default the name of the file.")] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the model's functions to this file, as a reference for later checks.",
            callback=to_write,
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the result to this file as JUnit XML.", callback=to_write),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append a summary in Markdown to this file.", callback=to_write),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tune a model and race it with a reference; exit status 1 if it became slower or could not be compared.

    A reference that is none of this model is an error, with exit status 2. Without --against, the model is tuned and
    recorded only.
    """
    if against is None and record is None:
        raise typer.BadParameter("give --against, or --record, or both", param_hint="--against")
    allowed = _share(max_slowdown)
    source = to_model(model, extents, exact_math, math)
    gate = None if against is None else gate_against(against, allowed)
    called = name or default_name(model)
    submission = SubmitOptions(max_trials=max_trials, max_seconds=max_seconds, name=called, gate=gate)
    try:
        with connect(context) as client:
            job = client.submit(source, target, **submission)
            with waiting(job, is_told=not as_json):
                job.wait(progress=not as_json)
            found = None if gate is None else CheckResult.of(job)
        if record is not None:
            write_reference(job, record)
    except CheckFailed as error:
        print_line(f"loopwright: {error}", error=True)
        raise typer.Exit(1) from None
    except InvalidRequest as error:
        if not error.problem.type.endswith(":no-reference"):
            raise
        print_line(f"loopwright: {error.detail}", error=True)
        raise typer.Exit(2) from None
    if found is not None:
        _tell(found, junit, summary, as_json)
    elif as_json:
        print_json(job.info)
    if record is not None and not as_json:
        print_line(f"the functions of job {job.id} are recorded in {record}")
    if found is not None and not found.passed:
        raise typer.Exit(1)


def _tell(found: CheckResult, junit: Path | None, summary: Path | None, as_json: bool) -> None:
    if junit is not None:
        junit.write_text(found.junit(), encoding="utf-8")
    if summary is not None:
        with summary.open("a", encoding="utf-8") as file:
            file.write(found.markdown())
    if as_json:
        print_json(found.result)
        return
    print_table(GATE.columns, [GATE.row(function) for function in found.result.functions])
    print_line(found.caption)

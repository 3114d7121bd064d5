"""``loopwright compare``: a model beside other engines."""

from __future__ import annotations

from typing import Annotated

import typer

from loopwright.cli.options import ExactMath, Extents, Json, Math, ModelFile, Target, connect, named_job, to_model
from loopwright.cli.output import print_json, print_line
from loopwright.cli.views import show_comparison


def compare(
    context: typer.Context,
    model: ModelFile,
    against: Annotated[
        str,
        typer.Option(
            metavar="ENGINE[,…]", help="Engines: torch, compile, ort, openvino, and tvm (without tuned schedules)."
        ),
    ] = "torch,compile,ort,openvino",
    target: Target = "auto",
    extents: Extents = None,
    exact_math: ExactMath = False,
    math: Math = "fp32",
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Samples per process.")] = 8,
    processes: Annotated[int, typer.Option(min=1, max=100, help="Processes per engine, run one after another.")] = 2,
    job: Annotated[str | None, typer.Option(metavar="JOB", help="Store the result with this job.")] = None,
    as_json: Json = False,
) -> None:
    """Compile a model with Loopwright and time it beside other engines on this machine; exit status 1 if that fails.

    Each engine runs in a process of its own, in turn with the others, and its outputs are checked.
    """
    with connect(context) as client:
        stored = None if job is None else named_job(client, job)
        found = client.compare(
            to_model(model, extents, exact_math, math),
            [name.strip() for name in against.split(",") if name.strip()],
            target,
            rounds=rounds,
            processes=processes,
            job=stored,
        )
    if as_json:
        print_json(found)
    else:
        show_comparison(found)
        if stored is not None:
            print_line(f"stored with job {stored.id}: {stored.url}")
    if found.engines[0].us is None:
        raise typer.Exit(1)

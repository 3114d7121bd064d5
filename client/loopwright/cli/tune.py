"""``loopwright tune``: from a model to a tuned model beside what its user runs today, in one command."""

from __future__ import annotations

from typing import Annotated

import typer

from loopwright.cli.following import page_of, show, waiting
from loopwright.cli.options import ExactMath, Json, ManyExtents, Math, ModelFile, Web, connect, default_name, to_model
from loopwright.cli.output import print_json, print_line
from loopwright.cli.service import start_in
from loopwright.cli.views import show_comparison
from loopwright.client import Client
from loopwright.errors import LoopwrightError
from loopwright.extras import require_tvm
from loopwright.jobs.job import Job
from loopwright.local import daemon
from loopwright.model import Model
from loopwright.results.comparison import Comparison
from loopwright.session import config

_TRIALS = 2000
"""More than a search of some minutes makes: its seconds, or a minute that is expected to gain nothing, end it."""
_SECONDS, _SECONDS_PER_FUNCTION = 45.0, 2.0
"""With the start of a service and the comparison, less than two minutes on two idle cores. A model of more than 22
functions takes longer: the closing race of a function takes about a second."""
_PROCESSES = 1
"""Of each engine: half of the time that `loopwright compare` takes, and an interval that knows less of the machine."""
_NO_COMPARISON = "none"


def tune(
    context: typer.Context,
    model: ModelFile,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            min=1,
            help=f"Seconds that the job may take; by default {_SECONDS:g}, or {_SECONDS_PER_FUNCTION:g} for each new "
            "function if that is more.",
        ),
    ] = None,
    max_trials: Annotated[int, typer.Option(min=1, help="Maximum number of candidates to measure.")] = _TRIALS,
    shape: ManyExtents = None,
    exact_math: ExactMath = False,
    math: Math = "fp32",
    against: Annotated[
        str | None,
        typer.Option(
            metavar="ENGINE[,…]",
            help="What to compare with: torch, compile, ort, openvino, tvm; or none. By default what the model's "
            "framework runs it with, if that is installed.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the job; by default the name of the file.")] = None,
    web: Web = False,
    as_json: Json = False,
) -> None:
    """Tune a model, and compare it with what you run today; exit status 1 if the job did not succeed.

    Without a service that --url, LOOPWRIGHT_URL or a login names, that of this machine is used, and started if need be:
    see 'loopwright service'. Weights stay on this machine.
    """
    source = to_model(model, shape, exact_math, math)
    engines = _engines(source, against)
    is_local = not config.names_a_service(context.find_root().obj[0])
    if is_local and not daemon.answers(config.local_service()):
        start_in(config.data_folder(), is_told=not as_json)
    with connect(context) as client:
        job = client.submit(
            source,
            max_trials=max_trials,
            max_seconds=max_seconds or _SECONDS,
            seconds_per_function=_SECONDS_PER_FUNCTION if max_seconds is None else None,
            until="plateau",
            name=name or default_name(model),
        )
        address = page_of(context, client, job)
        if web:
            typer.launch(address)
        with waiting(job, is_told=not as_json, address=address):
            job.wait(progress=not as_json)
        if not as_json:
            show(job, as_json)
        if job.state in ("failed", "cancelled"):
            if as_json:
                print_json({"job": job.info.model_dump(mode="json"), "comparison": None})
            raise typer.Exit(1)
        found = _comparison(client, job, source, engines, is_required=against is not None, is_told=not as_json)
    if as_json:
        comparison = None if found is None else found.model_dump(mode="json")
        print_json({"job": job.info.model_dump(mode="json"), "comparison": comparison})
    elif found is not None:
        print_line("")
        show_comparison(found)
        print_line(found.verdict)
    if job.state != "succeeded":
        raise typer.Exit(1)


def _engines(source: Model, against: str | None) -> list[str]:
    """Return the names of the engines to compare with. Raises ValueError before anything is tuned: one is unknown."""
    if against == _NO_COMPARISON:
        return []
    require_tvm()
    # Imported here, because the other commands need no NumPy.
    from loopwright.comparing.compare import engines_named, used_today

    names = used_today(source.model) if against is None else [name.strip() for name in against.split(",") if name]
    engines_named(names)
    return names


def _comparison(
    client: Client, job: Job, source: Model, engines: list[str], *, is_required: bool, is_told: bool
) -> Comparison | None:
    """Time the model beside other engines here, and store the result with its job.

    A model that cannot be compared, as a function by itself, is tuned all the same, unless the user named the engines.
    """
    if not engines:
        return None
    try:
        return client.compare(source, engines, job=job, processes=_PROCESSES, progress=is_told)
    except (LoopwrightError, ValueError) as error:
        if is_required:
            raise
        print_line(f"not compared: {error}", error=True)
        return None

"""``loopwright job``: submit a program and follow it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from loopwright import schemas
from loopwright.cli import following
from loopwright.cli.following import follow, page_of, tell_link, waiting
from loopwright.cli.options import (
    ExactMath,
    JobId,
    Json,
    Limit,
    ManyExtents,
    Math,
    MaxDeviceSeconds,
    ModelFile,
    Tags,
    TargetLatency,
    Targets,
    Until,
    Web,
    connect,
    default_name,
    in_microseconds,
    in_the_past,
    labels,
    named_job,
    to_model,
)
from loopwright.cli.output import print_json, print_line, print_table
from loopwright.cli.views import in_form, show_event, show_group, show_jobs, show_plan
from loopwright.client import Client
from loopwright.jobs.job import Job
from loopwright.jobs.job_diff import DIFF
from loopwright.jobs.job_group import JobGroup
from loopwright.jobs.submit_options import SubmitOptions
from loopwright.results.bottlenecks import BOTTLENECKS, in_words
from loopwright.results.tables import called
from loopwright.results.units import plural

app = typer.Typer(help="Submit programs for tuning and follow them.", no_args_is_help=True)


@app.command()
def submit(
    context: typer.Context,
    model: ModelFile,
    target: Targets = None,
    max_trials: Annotated[
        int, typer.Option(min=1, help="Maximum number of candidates to measure for each target.")
    ] = 64,
    max_seconds: Annotated[float | None, typer.Option(min=0, help="Seconds that the job may take.")] = None,
    max_device_seconds: MaxDeviceSeconds = None,
    target_latency: TargetLatency = None,
    until: Until = None,
    space: Annotated[
        Path | None,
        typer.Option(help="JSON file with a list of traces: the design space. By default, the built-in design space."),
    ] = None,
    shape: ManyExtents = None,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    name: Annotated[str | None, typer.Option(help="Name of the job; by default the name of the file.")] = None,
    priority: Annotated[
        int, typer.Option(min=-100, max=100, help="Jobs with a higher priority run first; above 0 for admins only.")
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Search even if the database has a certified best.")] = False,
    exact_math: ExactMath = False,
    math: Math = "fp32",
    private: Annotated[bool, typer.Option("--private", help="Hide the job from all users but you and admins.")] = False,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Measure only on workers with this label; repeat for more."),
    ] = None,
    tag: Tags = None,
    description: Annotated[str, typer.Option(help="What the job is for.")] = "",
    idempotency_key: Annotated[
        str | None, typer.Option(help="Any text; a second submission with the same key returns the same job.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job is finished.")] = False,
    web: Web = False,
    as_json: Json = False,
) -> None:
    """Submit a program and print the job's id; with several targets, print a table of their jobs."""
    source = to_model(model, shape, exact_math, math)
    options = SubmitOptions(
        max_trials=max_trials,
        max_seconds=max_seconds,
        max_device_seconds=max_device_seconds,
        target_latency_us=in_microseconds(target_latency),
        until=until,
        space=_traces(space) if space else None,
        seed=seed,
        name=name or default_name(model),
        priority=priority,
        force=force,
        visibility="private" if private else "team",
        labels=labels(label),
        tags=tag or (),
        description=description,
        idempotency_key=idempotency_key,
    )
    with connect(context) as client:
        if target and len(target) > 1:
            group = client.submit(source, targets=target, **options)
            _tell_submitted(client, group.jobs, max_trials)
            if web:  # the page of each of them names the others
                typer.launch(page_of(context, client, group.jobs[0]))
            _follow_group(group, wait, as_json)
            return
        job = client.submit(source, target[0] if target else "auto", **options)
        _tell_submitted(client, [job], max_trials)
        if web:
            typer.launch(page_of(context, client, job))
        _follow_or_tell(job, wait, as_json)


@app.command("list")
def list_(
    context: typer.Context,
    owner: Annotated[str | None, typer.Option(help="Only jobs of this user.")] = None,
    group: Annotated[str | None, typer.Option(help="Only the jobs of this group of targets.")] = None,
    name: Annotated[str | None, typer.Option(help="Only jobs of this name.")] = None,
    state: Annotated[
        list[schemas.JobState] | None, typer.Option(help="Only jobs in this state; repeat for more.")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only jobs with this tag.")] = None,
    search: Annotated[
        str | None, typer.Option(help="Only jobs with this in their name, or in that of a part of their model.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Only jobs that were submitted since: 90m, 12h or 7d ago, or an ISO date or time.",
        ),
    ] = None,
    sort: Annotated[
        schemas.JobSort, typer.Option(help="gain: those first that save most of one run of their model.")
    ] = "created",
    limit: Limit = 20,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="TEXT",
            help="A line for each job, with its fields in braces: '{id} {state} {url}', '{progress[trials]}'.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List jobs, the newest first unless sorted otherwise."""
    at = None if since is None else in_the_past(since)
    with connect(context) as client:
        found = client.jobs(owner, group, name=name, states=state or (), tag=tag, search=search, since=at, sort=sort)
        jobs = list(itertools.islice(found, limit))
    if as_json:
        print_json([job.info for job in jobs])
    elif form is not None:
        for line in [in_form(form, job) for job in jobs]:
            print_line(line)
    else:
        show_jobs(jobs)


@app.command()
def show(
    context: typer.Context,
    job_id: JobId,
    all_tasks: Annotated[
        bool, typer.Option("--all", help="Show all tasks and figures, including tasks that take hardly any time.")
    ] = False,
    web: Web = False,
    as_json: Json = False,
) -> None:
    """Show a job and its tasks, sorted by their share of the model's time."""
    with connect(context) as client:
        job = named_job(client, job_id)
        if web:
            typer.launch(page_of(context, client, job))
    if not as_json:
        tell_link(job)
    following.show(job, as_json, all_tasks)


@app.command()
def bottlenecks(
    context: typer.Context,
    job_id: JobId,
    as_json: Json = False,
) -> None:
    """Show what limits the functions of a job, which decision mattered, and where the time is left.

    The functions with most time left come first: the time above what the peaks of the machine allow.
    """
    with connect(context) as client:
        found = named_job(client, job_id).bottlenecks()
    if as_json:
        print_json(found)
        return
    for line in in_words(found):
        print_line(line)
    print_table(BOTTLENECKS.columns, [BOTTLENECKS.row(each) for each in found.functions])


@app.command()
def describe(
    context: typer.Context,
    job_id: JobId,
    tag: Tags = None,
    untag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Remove this tag; repeat for more.")] = None,
    text: Annotated[str | None, typer.Option(help="The new description; an empty one removes it.")] = None,
    as_json: Json = False,
) -> None:
    """Add tags to a job, remove some, or replace its description."""
    with connect(context) as client:
        job = named_job(client, job_id)
        tags = None if tag is None and untag is None else {*job.tags, *(tag or ())} - {*(untag or ())}
        following.show(job.describe(tags=None if tags is None else sorted(tags), description=text), as_json)


@app.command()
def diff(context: typer.Context, left: JobId, right: JobId, as_json: Json = False) -> None:
    """Show two jobs side by side, the functions with the largest difference first."""
    with connect(context) as client:
        found = named_job(client, left).diff(named_job(client, right))
    if as_json:
        print_json(found.rows)
        return
    print_table(DIFF.columns, [DIFF.row(row) for row in found.rows])
    print_line(found.caption)


@app.command("open")
def open_(context: typer.Context, job_id: JobId, as_json: Json = False) -> None:
    """Print the address of a job's page in the dashboard, and open it in the browser if there is one."""
    with connect(context) as client:
        job = named_job(client, job_id)
        address = job.url if as_json else page_of(context, client, job)
    if as_json:
        print_json({"url": address})
    else:
        print_line(address)
        typer.launch(address)


@app.command()
def wait(
    context: typer.Context,
    job_id: JobId,
    timeout: Annotated[float | None, typer.Option(min=0, help="Maximum seconds to wait.")] = None,
    web: Web = False,
    as_json: Json = False,
) -> None:
    """Wait until a job is finished, with progress bars; exit status 1 if it did not succeed."""
    with connect(context) as client:
        job = named_job(client, job_id)
        if web:
            typer.launch(page_of(context, client, job))
        follow(job, timeout, as_json)


@app.command()
def cancel(context: typer.Context, job_id: JobId, as_json: Json = False) -> None:
    """Cancel a job; its measurements are kept."""
    with connect(context) as client:
        job = named_job(client, job_id)
        if job.finished:
            print_line(f"job {job.id} had ended before; its state is {job.state}", error=True)
        following.show(job.cancel(), as_json)


@app.command()
def resubmit(
    context: typer.Context,
    job_id: JobId,
    max_trials: Annotated[int | None, typer.Option(min=1, help="Maximum number of candidates to measure.")] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0, help="Seconds that the job may take.")] = None,
    max_device_seconds: MaxDeviceSeconds = None,
    target_latency: TargetLatency = None,
    until: Until = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the search; by default the seed of the earlier job.")
    ] = None,
    force: Annotated[
        bool | None, typer.Option("--force/--no-force", help="Search even if the database has a certified best.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job is finished.")] = False,
    web: Web = False,
    as_json: Json = False,
) -> None:
    """Submit a job's program again, with the same target, space and options unless given."""
    limits: dict[str, Any] = {
        "max_trials": max_trials,
        "max_seconds": max_seconds,
        "max_device_seconds": max_device_seconds,
        "target_latency_us": in_microseconds(target_latency),
        "until": until,
    }
    with connect(context) as client:
        job = named_job(client, job_id).resubmit(
            seed=seed, force=force, **{key: each for key, each in limits.items() if each is not None}
        )
        if web:
            typer.launch(page_of(context, client, job))
        _follow_or_tell(job, wait, as_json)


@app.command()
def events(
    context: typer.Context,
    job_id: JobId,
    after: Annotated[int | None, typer.Option(help="Only events after this id.")] = None,
    as_json: Json = False,
) -> None:
    """Print the events of a job, as they happen, until it is finished; with --json, one object per line."""
    with connect(context) as client:
        job = named_job(client, job_id)
        names = {each.workload_hash: called(each) for each in job.tasks or job.rechecks()}
        for event in job.events(after):
            if as_json:
                print(json.dumps(asdict(event), ensure_ascii=False), flush=True)
            else:
                show_event(event, names)


def _traces(file: Path) -> Any:
    """Return the value in a JSON file."""
    try:
        return json.loads(file.read_bytes())
    except ValueError as error:
        raise typer.BadParameter(f"{file} is no JSON ({error})", param_hint="--space") from error


def _follow_or_tell(job: Job, wait: bool, as_json: bool) -> None:
    """Follow a job that was submitted, or print its id, and on standard error the page that shows it."""
    if wait:
        follow(job, None, as_json)
    elif as_json:
        print_json(job.info)
    else:
        tell_link(job)
        print_line(job.id)


def _tell_submitted(client: Client, jobs: Sequence[Job], max_trials: int) -> None:
    """Print the buckets that are tuned, and a warning if the trials are few, on standard error."""
    if client.last_plan is not None:
        show_plan(client.last_plan)
    # Targets differ in what is known for them already.
    job = max(jobs, key=lambda job: job.info.suggested_trials)
    suggested = job.info.suggested_trials
    if max_trials < suggested:
        allowed, functions = plural(max_trials, "trial"), plural(len(job.tasks), "function")
        print_line(f"{allowed} for {functions}: --max-trials {suggested} or more is suggested", error=True)


def _follow_group(group: JobGroup, wait: bool, as_json: bool) -> None:
    if wait:
        with waiting(*group.jobs, is_told=not as_json):
            group.wait(progress=not as_json)
    if as_json:
        print_json(group.info)
    else:
        show_group(group)
    if wait and not group.succeeded:
        raise typer.Exit(1)

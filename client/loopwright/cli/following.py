"""Following jobs: the link to each, progress until it ends, and what is said when the user stops the command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from loopwright.cli.output import print_json, print_line
from loopwright.cli.views import show_job
from loopwright.client import Client
from loopwright.jobs.job import Job
from loopwright.session import config


def page_of(context: typer.Context, client: Client, job: Job) -> str:
    """Return the address of a job's page. On this machine's own service, it signs a browser in, once."""
    if config.names_a_service(context.find_root().obj[0]):
        return job.url
    return client.access.login_url(job.page)


def tell_link(job: Job, address: str | None = None) -> None:
    """Print which page shows a job, on standard error: by default its plain address."""
    print_line(f"job {job.id}: {address or job.url}", error=True)


@contextmanager
def waiting(*jobs: Job, is_told: bool, address: str | None = None) -> Iterator[None]:
    """Say which jobs are waited for, and, when the user stops the command, that they go on; on standard error."""
    for job in jobs if is_told else ():
        tell_link(job, address)
    try:
        yield
    except KeyboardInterrupt:
        for job in jobs:
            commands = f"'loopwright job wait {job.id}' follows it, 'loopwright job cancel {job.id}' ends it"
            print_line(f"job {job.id} goes on; {commands}", error=True)
        raise typer.Exit(130) from None


def follow(job: Job, timeout: float | None, as_json: bool) -> None:
    """Wait for a job and show it. Exit with status 1 if it did not succeed."""
    with waiting(job, is_told=not as_json):
        job.wait(progress=not as_json, timeout=timeout)
    show(job, as_json)
    if job.state != "succeeded":
        raise typer.Exit(1)


def show(job: Job, as_json: bool, all_tasks: bool = False) -> None:
    if as_json:
        print_json(job.info)
    else:
        show_job(job, all_tasks)

"""``loopwright record``: what was measured, in and out."""

from __future__ import annotations

import itertools
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from loopwright.cli.options import Json, Limit, connect
from loopwright.cli.output import print_json, print_line, print_table
from loopwright.cli.views import show_lineage, show_logged_tasks, show_record, show_records
from loopwright.results.tables import NEIGHBOURS
from loopwright.results.tuning_logs import NOT_IMPORTED, logged_tasks

app = typer.Typer(help="List, export and import tuning records.", no_args_is_help=True)

Directory = Annotated[Path, typer.Argument(help="Directory of TVM's pair of JSON files.", file_okay=False)]
RecordId = Annotated[str, typer.Argument(metavar="RECORD", help="Id of the record.")]


@app.command("list")
def list_(
    context: typer.Context,
    workload: Annotated[str | None, typer.Option(help="Only records of the workload with this hash.")] = None,
    target: Annotated[str | None, typer.Option(help='Only records of this target; may be "auto".')] = None,
    search: Annotated[
        str | None,
        typer.Option(help="Only records of functions with this in their name, or in that of the part of a model."),
    ] = None,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List measured trials, the fastest first."""
    with connect(context) as client:
        records = list(itertools.islice(client.records(workload, target, search=search), limit))
    if as_json:
        print_json(records)
    else:
        show_records(records)


@app.command()
def show(
    context: typer.Context,
    record_id: RecordId,
    as_json: Json = False,
) -> None:
    """Show a record with its scheduled program."""
    with connect(context) as client:
        record = client.record(record_id)
    if as_json:
        print_json(record)
    else:
        show_record(record)


@app.command()
def ablate(
    context: typer.Context,
    record_id: RecordId,
    as_json: Json = False,
) -> None:
    """Race a record's schedule with its neighbours, and show what each of its decisions brings.

    A neighbour differs from the schedule in one decision. Exit status 1 if they could not be raced.
    """
    with connect(context) as client:
        job = client.ablate(record_id).wait(progress=not as_json)
        found = client.ablation(record_id)
    assert found is not None, "it was started above"
    if as_json:
        print_json(found)
    elif found.result is not None:
        by_slowdown = sorted(found.result.neighbours, key=lambda each: -(each.slowdown.value if each.slowdown else 0.0))
        print_table(NEIGHBOURS.columns, [NEIGHBOURS.row(each) for each in by_slowdown])
    if job.state != "succeeded":
        print_line(f"the job {job.id} {job.state}: {job.error or ''}", error=True)
        raise typer.Exit(1)


@app.command()
def lineage(
    context: typer.Context,
    record_id: RecordId,
    as_json: Json = False,
) -> None:
    """Show the trials of which a record descends, with what each mutation changed, and how the best differs."""
    with connect(context) as client:
        found = client.lineage(record_id)
    if as_json:
        print_json(found)
    else:
        show_lineage(found)


@app.command()
def export(context: typer.Context, directory: Directory, as_json: Json = False) -> None:
    """Write the certified bests as database_workload.json and database_tuning_record.json."""
    with connect(context) as client:
        client.export_records(directory)
    if as_json:
        print_json({"directory": str(directory)})
    else:
        print_line(f"written to {directory}")


@app.command("import")
def import_(
    context: typer.Context,
    path: Annotated[
        Path, typer.Argument(help="Directory of TVM's pair of JSON files, or a log of AutoTVM or auto_scheduler.")
    ],
    as_json: Json = False,
) -> None:
    """Send a TVM tuning database to the service.

    Logs of AutoTVM and auto_scheduler are shown, but not sent, as their schedules cannot be replayed; exit status 2.
    """
    if tasks := logged_tasks(path):
        if as_json:
            print_json({"imported": 0, "reason": NOT_IMPORTED, "tasks": [asdict(task) for task in tasks]})
        else:
            show_logged_tasks(tasks)
            print_line(NOT_IMPORTED)
        raise typer.Exit(2)
    with connect(context) as client:
        report = client.import_records(path)
    if as_json:
        print_json(report)
        return
    print_line(f"{report.imported} records imported, {report.duplicates} known before, {len(report.errors)} not taken")
    if report.signed_here or report.signed_elsewhere:
        print_line(
            f"with certificates: {report.signed_here} signed by this service, {report.signed_elsewhere} by another "
            "deployment; your own workers certify them anew"
        )
    for error in report.errors:
        print_line(f"  {error}")

"""What commands print: JSON for programs, tables for people. All of it goes to standard output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

from loopwright import schemas


def print_json(value: BaseModel | Sequence[BaseModel] | dict[str, Any]) -> None:
    """One JSON document, indented; times as RFC 3339."""
    if isinstance(value, BaseModel):
        plain: Any = value.model_dump(mode="json")
    elif isinstance(value, dict):
        plain = value
    else:
        plain = [item.model_dump(mode="json") for item in value]
    print(json.dumps(plain, indent=2, ensure_ascii=False))


def print_line(text: str) -> None:
    Console(soft_wrap=True).print(text, markup=False, highlight=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """A table as wide as the terminal; numbers stand under each other. Cells are text, never markup."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in _NUMBERS else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


_NUMBERS = frozenset({"trials", "baseline", "best", "speedup", "median", "weight", "threads", "builders"})


def show_jobs(jobs: Sequence[schemas.Job]) -> None:
    rows = [
        (job.id, job.name, job.state, f"{job.progress.trials}/{job.progress.total}", f"{job.created_at:%Y-%m-%d %H:%M}")
        for job in jobs
    ]
    print_table(("job", "name", "state", "trials", "created (UTC)"), rows)


def show_job(job: schemas.Job) -> None:
    print_line(f"{job.id}  {job.name}  {job.state}  {job.progress.trials} of {job.progress.total} trials")
    for note in job.notes:
        print_line(f"note: {note}")
    if job.error:
        print_line(f"error: {job.error}")
    columns = ("task", "weight", "trials", "baseline", "best", "speedup", "certified", "answered from", "state")
    print_table(columns, [_task_row(task) for task in job.tasks])


def _task_row(task: schemas.Task) -> tuple[str, ...]:
    failures = ", ".join(f"{count} {kind}" for kind, count in task.failures.items())
    return (
        task.name,
        str(task.weight),
        str(task.trials),
        micros(task.baseline_us),
        micros(task.best_us),
        times(task.speedup),
        "yes" if task.certified else "no",
        task.answered_from or "-",
        f"{task.state} ({failures} failed)" if failures else task.state,
    )


def show_best(best: schemas.Best) -> None:
    kind = "the unscheduled program is the best" if best.is_baseline else "schedule found"
    rows = [
        ("workload", f"{best.workload_hash} ({best.name})"),
        ("target", json.dumps(best.target, sort_keys=True)),
        ("device class", best.device_class),
        ("record", best.record_id),
        ("baseline", micros(best.baseline_us)),
        ("best", f"{micros(best.best_us)}, {times(best.speedup)} ({kind})"),
        ("certified", f"{best.certificate.inputs}; largest error {best.certificate.max_abs_error:.3g}"),
    ]
    print_table(("what", "value"), rows)


def show_records(records: Sequence[schemas.Record]) -> None:
    rows = [
        (record.id, record.name, micros(record.median_us), "yes" if record.certified else "no", record.device_class)
        for record in records
    ]
    print_table(("record", "workload", "median", "certified", "device class"), rows)


def show_record(record: schemas.RecordDetail) -> None:
    show_records([record])
    print_line(f"\n{record.script_after}")


def show_workers(workers: Sequence[schemas.Worker]) -> None:
    rows = [
        (
            worker.host,
            worker.device,
            str(worker.threads),
            str(worker.builders),
            "alive" if worker.alive else f"gone since {worker.last_seen_at:%Y-%m-%d %H:%M} UTC",
            json.dumps(worker.target, sort_keys=True),
        )
        for worker in workers
    ]
    print_table(("host", "device", "threads", "builders", "state", "target"), rows)


def show_login(url: str, service: schemas.Version, file: Path, as_json: bool) -> None:
    if as_json:
        print_json({"url": url, "service": service.model_dump(mode="json"), "saved": str(file)})
    else:
        print_line(f"logged in to {url} (Loopwright {service.loopwright}, TVM {service.tvm}); saved in {file}")


def micros(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f} µs"


def times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"

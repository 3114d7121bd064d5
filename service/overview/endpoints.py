"""``/overview`` and ``/best-schedules``."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse

from db.engine.changes import Topic
from db.results.best_schedules import BestSchedule, BestScheduleQuery
from loopwright import schemas
from loopwright.codegen.machine.names import machine_name
from loopwright.codegen.source_text import shortened
from service.api.answers import CLOCK_SECONDS, LONGEST_SECONDS, kept
from service.bodies.route import ParsedRoute
from service.context import LIVE_SECONDS, Context, Ctx
from service.problems import file_response
from service.records.wire import interval
from service.units import micros

router = APIRouter(tags=["overview"], route_class=ParsedRoute)

_RECENT = 100
"""Bests of which the overview shows those that gain most."""
_SHOWN = 10
_HOUR = 3600.0
_COUNTED_SECONDS = 5.0
"""Not tuned."""


async def _query(
    q: Annotated[
        str, Query(max_length=200, description="Part of a name, an op or the place of a call, or a hash's beginning")
    ] = "",
    target: Annotated[str | None, Query(description="Kind of target: llvm or cuda")] = None,
    device_class: Annotated[str | None, Query(description="Id of a device class")] = None,
    op: Annotated[str | None, Query(description="What functions compute, such as matmul")] = None,
    sort: Annotated[schemas.BestScheduleSort, Query(description="Column to sort by")] = "created",
    order: Annotated[Literal["asc", "desc"] | None, Query(description="Without it, what suits the column")] = None,
) -> BestScheduleQuery:
    descending = sort in ("created", "speedup", "peak", "baseline") if order is None else order == "desc"
    return BestScheduleQuery(q.strip(), target, device_class, op, sort, descending)


Filtered = Annotated[BestScheduleQuery, Depends(_query)]


@router.get("/overview")
@kept(CLOCK_SECONDS, Topic.JOBS, Topic.WORKERS)
def get_overview(ctx: Ctx) -> schemas.Overview:
    """Return the figures of the overview, and those of the newest bests that gain most."""
    with ctx.database.snapshot():
        totals = ctx.database.totals()
        workers = ctx.database.workers.count(LIVE_SECONDS)
        trials_last_hour = _recent_trials(ctx)
        gainers = ctx.database.best_schedules.gainers(_RECENT, _SHOWN)
    return schemas.Overview(
        jobs_running=totals.jobs.get("running", 0),
        jobs_queued=totals.jobs.get("queued", 0),
        jobs_finished=sum(totals.jobs.get(state, 0) for state in schemas.FINISHED),
        workers_alive=workers.alive,
        workers_total=workers.total,
        workers_quarantined=workers.quarantined,
        workloads=totals.workloads,
        bests=totals.bests,
        trials=totals.trials,
        trials_last_hour=trials_last_hour,
        time_saved_us=micros(totals.saved_secs),
        search_saved_s=totals.search_saved_secs,
        recent_bests=[_row(row) for row in gainers],
    )


def _recent_trials(ctx: Context) -> int:
    """Return the trials of the last hour, counted every few seconds: a fleet makes a hundred thousand of them."""
    period = time.monotonic() // _COUNTED_SECONDS
    return ctx.recent_trials.get((ctx.viewer, period), lambda: ctx.database.trials_within(_HOUR))


@router.get("/best-schedules")
@kept(LONGEST_SECONDS, Topic.OTHER)
def get_best_schedules(
    ctx: Ctx,
    query: Filtered,
    offset: Annotated[int, Query(ge=0, le=2**31 - 1, description="Rows to leave out at the beginning")] = 0,
    limit: Annotated[int, Query(ge=1, le=500, description="Rows at most")] = 50,
) -> schemas.BestSchedules:
    """List the certified best of each workload and device class, in any order, from any row."""
    rows, total = ctx.database.best_schedules.page(query, offset, limit)
    return schemas.BestSchedules(items=[_row(row) for row in rows], total=total)


@router.get("/best-schedules/filters")
@kept(LONGEST_SECONDS, Topic.OTHER)
def get_best_schedules_filters(ctx: Ctx) -> schemas.BestScheduleFilters:
    """Return the values by which the list of best schedules can be filtered."""
    found = ctx.database.best_schedules.filters()
    return schemas.BestScheduleFilters(
        ops=[schemas.OpCount(op=op, bests=bests) for op, bests in found.ops],
        device_classes=[
            schemas.DeviceClassCount(
                device_class=id,
                device_model=machine_name(model, target_json),
                target=json.loads(target_json),
                bests=bests,
            )
            for id, model, target_json, bests in found.device_classes
        ],
    )


@router.get("/best-schedules.csv", response_class=StreamingResponse, responses=file_response("text/csv"))
@kept(LONGEST_SECONDS, Topic.OTHER)
def get_best_schedules_csv(ctx: Ctx, query: Filtered) -> StreamingResponse:
    """Return all rows that match the filters as CSV: latencies in microseconds, shares as fractions."""
    return StreamingResponse(
        _csv(_row(row) for row in ctx.database.best_schedules.all(query)),
        media_type="text/csv",
        headers={"Content-Disposition": 'attachment; filename="loopwright-bests.csv"'},
    )


def _row(row: BestSchedule) -> schemas.BestSchedule:
    return schemas.BestSchedule(
        workload_hash=row.workload_hash,
        name=row.name,
        op=row.op,
        args=[schemas.Tensor(shape=list(info.shape), dtype=info.dtype) for info in row.args],
        target=json.loads(row.target_json),
        device_class=row.device_class_id,
        device_model=machine_name(row.device_model, row.target_json),
        baseline_us=micros(row.baseline_median),
        best_us=micros(row.best_median),
        spread=row.spread,
        speedup=row.speedup,
        interval=interval(row.interval),
        is_baseline=row.is_baseline,
        peak_share=row.peak_share,
        created_at=row.created_at,
        regressed=row.regressed,
        record_id=row.trial_id,
        certificate_id=row.certificate_id,
        job_id=row.job_id,
        job_name=row.job_name,
        source=shortened(row.sources or ()) or None,
    )


_SPELLED: dict[str, Any] = {
    "args": lambda row: " ".join(f"{info.dtype}[{'x'.join(map(str, info.shape))}]" for info in row.args),
    "target": lambda row: json.dumps(row.target, sort_keys=True),
    "created_at": lambda row: row.created_at.isoformat(),
    "interval": lambda row: f"{row.interval.low} {'' if row.interval.high is None else row.interval.high}",
}
"""Columns that are not written as they are."""
_ROWS_A_CHUNK = 500


def _csv(rows: Iterable[schemas.BestSchedule]) -> Iterator[str]:
    """Some hundred lines at a time."""
    names = list(schemas.BestSchedule.model_fields)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    for number, row in enumerate(rows, 1):
        writer.writerow([_SPELLED[name](row) if name in _SPELLED else _cell(getattr(row, name)) for name in names])
        if number % _ROWS_A_CHUNK == 0:
            yield _taken(text)
    yield _taken(text)


def _cell(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula is told to be text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _taken(text: io.StringIO) -> str:
    content = text.getvalue()
    text.seek(0)
    text.truncate()
    return content

"""``/workloads/{hash}/…``: statistics of the measured trials of a workload."""

from __future__ import annotations

import itertools
import json
import math
from typing import Annotated

from fastapi import APIRouter, Query

from db.engine.changes import Topic
from db.results.insight import HistoryEntry, Prediction
from loopwright import schemas
from loopwright.codegen.machine.names import machine_name
from service.api.answers import LONGEST_SECONDS, kept
from service.bodies.route import ParsedRoute
from service.context import Context, Ctx, Paging
from service.fleet.wire import peaks
from service.records.wire import interval
from service.units import micros
from service.workloads import decisions
from service.workloads.ranks import spearman
from service.workloads.roof import moved_bytes, roof

router = APIRouter(prefix="/workloads/{workload_hash}", tags=["workloads"], route_class=ParsedRoute)

_MOST_PREDICTIONS = 2000

OneClass = Annotated[str | None, Query(description="Id of a device class; without it, all")]
ClassQuery = Annotated[
    str | None, Query(description="Id of a device class; without it, the one with the most records of the workload")
]


def _class(ctx: Context, workload_hash: str, device_class: str | None) -> str | None:
    """Raises NotFound for a workload or a device class that nobody knows."""
    ctx.database.workloads.get(workload_hash)
    if device_class is not None:
        ctx.database.devices.get(device_class)
        return device_class
    return ctx.database.insight.device_class(workload_hash)


@router.get("/history")
@kept(LONGEST_SECONDS, Topic.OTHER)
def get_history(
    ctx: Ctx, paging: Paging, workload_hash: str, device_class: OneClass = None
) -> schemas.Page[schemas.HistoryPoint]:
    """List the certificates of all device classes or of one, the oldest first."""
    ctx.database.workloads.get(workload_hash)
    page = ctx.database.insight.history(workload_hash, device_class, paging.size, paging.token)
    return schemas.Page(items=[_point(entry) for entry in page.items], next_page_token=page.next_page_token)


def _point(entry: HistoryEntry) -> schemas.HistoryPoint:
    certificate = entry.certificate
    return schemas.HistoryPoint(
        created_at=certificate.created_at,
        device_class=certificate.device_class_id,
        device_model=machine_name(entry.device_model, entry.target_json),
        target=json.loads(entry.target_json),
        baseline_us=micros(certificate.baseline_median),
        best_us=micros(certificate.best_median),
        speedup=certificate.speedup,
        interval=interval(certificate.interval),
        spread=certificate.value.spread,
        is_baseline=entry.is_baseline,
        is_best=entry.is_best,
        record_id=certificate.trial_id,
        job_id=entry.job_id,
        job_name=entry.job_name,
    )


@router.get("/decisions")
@kept(LONGEST_SECONDS, Topic.TRIALS, of="workload_hash")
def get_decisions(
    ctx: Ctx,
    workload_hash: str,
    device_class: ClassQuery = None,
    limit: Annotated[int, Query(ge=1, le=decisions.MOST, description="The fastest so many trials")] = 200,
) -> schemas.Decisions:
    """Return the decisions of the fastest trials, and the importance of each decision."""
    chosen = _class(ctx, workload_hash, device_class)
    if chosen is None:
        return schemas.Decisions(device_class=None, columns=[], rows=[])
    trials, table = decisions.fastest(ctx, workload_hash, chosen, limit)
    rows = [
        schemas.DecisionRow(
            record_id=trial.trial_id,
            median_us=micros(trial.median),
            origin=trial.origin,
            certified=trial.certified,
            values=values,
        )
        for trial, values in zip(trials, table.rows, strict=True)
    ]
    columns = [
        schemas.DecisionColumn(
            name=column.name,
            kind=column.kind,
            log=column.log,
            categories=column.categories,
            importance=column.importance,
        )
        for column in table.columns
    ]
    coverage = [schemas.Coverage(name=each.name, tried=each.tried, possible=each.possible) for each in table.coverage]
    return schemas.Decisions(device_class=chosen, columns=columns, rows=rows, coverage=coverage)


@router.get("/predictions")
@kept(LONGEST_SECONDS, Topic.TRIALS, of="workload_hash")
def get_predictions(ctx: Ctx, workload_hash: str, device_class: ClassQuery = None) -> schemas.Predictions:
    """Return the models' scores and the measured latencies of the newest 2,000 trials, by round."""
    chosen = _class(ctx, workload_hash, device_class)
    found = [] if chosen is None else ctx.database.insight.predictions(workload_hash, chosen, _MOST_PREDICTIONS)
    together = itertools.groupby(found, key=lambda each: (each.task_id, each.created_at, each.predicted_by))
    rounds = [_round(number, list(pairs)) for number, (_, pairs) in enumerate(together, 1)]
    ranked = [(each.rank_correlation, len(each.pairs)) for each in rounds if each.rank_correlation is not None]
    weight = sum(pairs for _, pairs in ranked)
    mean = math.fsum(correlation * pairs for correlation, pairs in ranked) / weight if weight else None
    return schemas.Predictions(device_class=chosen, rounds=rounds, rank_correlation=mean)


def _round(number: int, found: list[Prediction]) -> schemas.PredictionRound:
    return schemas.PredictionRound(
        number=number,
        model=found[0].predicted_by,
        job_id=found[0].job_id,
        created_at=found[0].created_at,
        pairs=[
            schemas.PredictionPair(record_id=each.trial_id, predicted=each.predicted, median_us=micros(each.median))
            for each in found
        ],
        rank_correlation=spearman([each.predicted for each in found], [-each.median for each in found]),
    )


@router.get("/roofline")
@kept(LONGEST_SECONDS, Topic.TRIALS, of="workload_hash")
def get_roofline(ctx: Ctx, workload_hash: str, device_class: ClassQuery = None) -> schemas.Roofline:
    """Return how close the baseline and the best come to the device's measured peaks."""
    chosen = _class(ctx, workload_hash, device_class)
    workload = ctx.database.workloads.get(workload_hash).summary
    flop, moved = workload.operation.flop, moved_bytes(workload)
    measured = None if chosen is None else ctx.database.devices.peaks(chosen)
    best = None if chosen is None else ctx.database.certificates.best(workload_hash, chosen)
    limit = roof(workload, measured, None if best is None else best.certificate.best_median)
    points = []
    if best is not None and flop is not None:
        comparable = measured is not None and measured.dtype == workload.operation.dtype
        for name, secs in (("baseline", best.certificate.baseline_median), ("best", best.certificate.best_median)):
            share = flop / secs / measured.flops if comparable and measured else None
            points.append(schemas.RooflinePoint(name=name, us=micros(secs), flops=flop / secs, peak_share=share))
    return schemas.Roofline(
        device_class=chosen,
        flop=flop,
        dtype=workload.operation.dtype or None,
        bytes=moved,
        intensity=None if flop is None else flop / moved,
        peaks=None if measured is None else peaks(measured),
        limit=None if limit is None else limit.limit,
        roof_us=None if limit is None else micros(limit.seconds),
        points=points,
    )

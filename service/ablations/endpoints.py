"""``/records/{id}/ablation`` and ``…/lineage``: which decisions matter, and where a schedule comes from."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request, Response

from db.inputs import NewJob
from db.views import RecordDetail, RecordView
from loopwright import schemas
from loopwright.codegen import labels
from loopwright.codegen.versions import TVM_VERSION
from service.ablations import MOST, wire
from service.bodies.route import ParsedRoute
from service.context import Context, Ctx
from service.fleet.offers import live_offers
from service.identity.rights import needs
from service.identity.visitor import Asking
from service.jobs.sent import on_wire
from service.problems import ProblemError
from service.units import micros
from service.workloads import decisions
from tuner.budget import Budget
from tuner.inspection.answers import DecisionTable
from tuner.types import DeviceClass

router = APIRouter(tags=["records"], route_class=ParsedRoute)


@router.post("/records/{record_id}/ablation", status_code=202)
@needs("submit")
def start_ablation(ctx: Ctx, visitor: Asking, record_id: str, request: Request, response: Response) -> schemas.Job:
    """Store a job that races a record's schedule with up to 28 neighbours, each of which differs in one decision."""
    found = ctx.database.records.get(record_id)
    if found.record.trace_json is None:
        raise ProblemError(
            422, "nothing-to-ablate", "This record is the unscheduled program, which makes no decisions."
        )
    if not decisions.are_in(found.record.trace_json):
        raise ProblemError(
            422, "nothing-to-ablate", "This schedule makes no decisions, so there is nothing to replace in it."
        )
    new = NewJob(
        name=f"ablation of {found.record.name}"[: labels.LONGEST],
        module_json="",
        device_class=_machine(ctx, found),
        budget=Budget(max_trials=MOST),
        user_name=visitor.user,
        private=not ctx.database.workloads.is_shared(found.record.workload_hash),
        ablated_trial=record_id,
    )
    view = ctx.database.jobs.create(new, [], TVM_VERSION)
    response.headers["Location"] = request.url_for("get_job", job_id=view.id).path
    [job] = on_wire(ctx, [view])
    return job


def _machine(ctx: Context, found: RecordDetail) -> DeviceClass:
    """Return the device class that measured a record. Raise ProblemError if no live worker is of that class."""
    own = found.device_class
    for offer in live_offers(ctx):
        if replace(offer.device_class, target_json=own.target_json) == own:
            return own
    raise ProblemError(
        422,
        "target-not-offered",
        f"No live worker is of the device class {own.id} that measured this record. Start one, or tune the function on "
        "a machine that is there.",
    )


@router.get("/records/{record_id}/ablation")
def get_ablation(ctx: Ctx, record_id: str) -> schemas.Ablation | None:
    """Return the newest ablation of a record; null if there was none."""
    ctx.database.records.get(record_id)
    found = ctx.database.ablations.of_record(record_id)
    return None if found is None else wire.ablation(found)


@router.get("/jobs/{job_id}/ablation")
def get_ablation_of_job(ctx: Ctx, job_id: str) -> schemas.Ablation | None:
    """Return the ablation that a job measures; null for other jobs."""
    ctx.database.jobs.get(job_id)
    found = ctx.database.ablations.of_job(job_id)
    return None if found is None else wire.ablation(found)


@router.get("/records/{record_id}/lineage")
def get_lineage(ctx: Ctx, record_id: str) -> schemas.Lineage:
    """Return the measured ancestors of a record, and how it differs from each and from the best of its workload."""
    found = ctx.database.records.get(record_id)
    record = found.record
    ancestors = ctx.database.records.ancestors(record_id)
    best = ctx.database.certificates.best(record.workload_hash, record.device_class_id)
    other = None if best is None or best.certificate.trial_id == record_id else best
    line = [record, *ancestors]
    traces = [each.trace_json for each in line] + ([other.trace_json] if other is not None else [])
    table = _table(ctx, found, [trace for trace in traces if trace is not None])
    rows = iter(range(len(table.rows)))
    row_of = [None if trace is None else next(rows) for trace in traces]
    return schemas.Lineage(
        ancestors=[
            _ancestor(each, _changes(table, row_of[number + 1], row_of[number]))
            for number, each in enumerate(ancestors)
        ],
        best_id=None if other is None else other.certificate.trial_id,
        best_us=None if other is None else micros(other.certificate.best_median),
        against_best=[] if other is None else _changes(table, row_of[0], row_of[-1]),
    )


def _table(ctx: Context, found: RecordDetail, traces: list[str]) -> DecisionTable:
    if len(traces) < 2:
        return DecisionTable([], [[] for _ in traces])
    return ctx.sandbox.decisions(
        module_json=found.workload.module_json,
        traces=traces,
        target_json=found.record.target_json,
        latencies=[1.0] * len(traces),
    )


def _ancestor(view: RecordView, changes: list[schemas.DecisionChange]) -> schemas.Ancestor:
    return schemas.Ancestor(record_id=view.id, origin=view.origin, median_us=micros(view.median), changes=changes)


def _changes(table: DecisionTable, before: int | None, after: int | None) -> list[schemas.DecisionChange]:
    if before is None or after is None:
        return []
    found = []
    for position, column in enumerate(table.columns):
        values = [decisions.in_words(column.categories, table.rows[row][position]) for row in (before, after)]
        if column.kind in decisions.SAMPLED and values[0] != values[1]:
            found.append(schemas.DecisionChange(name=column.name, before=values[0], after=values[1]))
    return found

"""``/workloads``: the functions that the database knows, and the best schedule of each."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from db.engine.changes import Topic
from db.views import WorkloadView
from loopwright import schemas
from loopwright.codegen.source_text import shortened
from service.api.answers import LONGEST_SECONDS, kept
from service.bodies.route import ParsedRoute
from service.context import Ctx, Paging
from service.fleet.offers import resolve
from service.problems import ProblemError
from service.records import wire

router = APIRouter(prefix="/workloads", tags=["workloads"], route_class=ParsedRoute)


def _workload(view: WorkloadView) -> schemas.Workload:
    return schemas.Workload(
        hash=view.hash,
        name=view.name,
        op=view.operation.op,
        math=view.operation.math,
        flop=view.operation.flop,
        args=[schemas.Tensor(shape=list(info.shape), dtype=info.dtype) for info in view.args],
        tvm_version=view.tvm_version,
        created_at=view.created_at,
        records=view.records,
    )


TargetText = Annotated[str, Query(description="'auto', a target string or its JSON")]


@router.get("")
@kept(LONGEST_SECONDS, Topic.TRIALS)
def list_workloads(ctx: Ctx, paging: Paging) -> schemas.Page[schemas.Workload]:
    """Return all workloads, the newest first."""
    page = ctx.database.workloads.page(paging.size, paging.token)
    return schemas.Page(items=[_workload(view) for view in page.items], next_page_token=page.next_page_token)


@router.get("/{workload_hash}")
@kept(LONGEST_SECONDS, Topic.TRIALS, of="workload_hash")
def get_workload(ctx: Ctx, workload_hash: str) -> schemas.WorkloadDetail:
    """Return a workload with its program and its certified bests."""
    found = ctx.database.workloads.get(workload_hash)
    bests = ctx.database.certificates.bests(workload_hash=workload_hash)
    sources = ctx.database.records.sources(bests.items[0].certificate.trial_id) if bests.items else ()
    return schemas.WorkloadDetail(
        **dict(_workload(found.summary)),
        source=shortened(sources) or None,
        script=found.script,
        bests=[wire.best(view) for view in bests.items],
    )


@router.get("/{workload_hash}/module")
def get_workload_module(ctx: Ctx, workload_hash: str) -> schemas.ModulePayload:
    """Return the unscheduled workload as TVM's JSON: a module whose only function is ``main``."""
    return schemas.ModulePayload(format="tvm-json", data=ctx.database.workloads.get(workload_hash).module_json)


@router.get("/{workload_hash}/best")
def get_best(ctx: Ctx, workload_hash: str, target: TargetText = "auto") -> schemas.Best:
    """Return the certified best schedule for a target; 404 if none is known."""
    ctx.database.workloads.get(workload_hash)
    found = ctx.database.certificates.best(workload_hash, resolve(ctx, target).id)
    if found is None:
        raise ProblemError(
            404, "not-found", f"No certified schedule of {workload_hash} for {target!r} is known; submit a job for it."
        )
    return wire.best(found)

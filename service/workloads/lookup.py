"""``POST /workloads/lookup``: the bests of all functions of a model, or their records alone, in one request."""

from __future__ import annotations

import json

from fastapi import APIRouter

from loopwright import schemas
from service.bodies.route import ParsedRoute
from service.context import Context, Ctx
from service.fleet.offers import resolve
from service.identity.rights import needs
from service.problems import BODY
from service.records import wire

router = APIRouter(prefix="/workloads", tags=["workloads"], route_class=ParsedRoute)


@router.post("/lookup", responses=BODY)
@needs("read")
def look_up(ctx: Ctx, body: schemas.Lookup) -> schemas.LookupAnswer:
    """Return the certified best of each function, given as a workload hash or a lowered function. Guests may ask, too.

    The best is the fastest of the device classes with the target, or of the one that the request names. With
    ``imported``, functions without one have the schedule that was imported for them, which is not certified here.
    """
    if body.device_class is not None:
        ctx.database.devices.get(body.device_class)
    target_json = resolve(ctx, body.target).target_json
    hashes = _hashes(ctx, body.functions)
    known = ctx.database.lookup.bests(hashes, target_json, device_class_id=body.device_class, modules=body.modules)
    wanted = dict.fromkeys(hashes)
    misses = [workload_hash for workload_hash in wanted if workload_hash not in known]
    return schemas.LookupAnswer(
        target=json.loads(target_json),
        functions=hashes,
        hits=[
            schemas.LookupHit(
                workload_hash=workload_hash,
                best=wire.best(known[workload_hash].best),
                module=_module(known[workload_hash].module_json),
            )
            for workload_hash in wanted
            if workload_hash in known
        ],
        misses=misses,
        imported=[
            schemas.ImportedSchedule(
                workload_hash=each.workload_hash,
                record_id=each.record_id,
                trace=json.loads(each.trace_json),
                codegen_version=each.codegen_version,
            )
            for each in (ctx.database.imports.schedules(misses, target_json) if body.imported else ())
        ],
    )


@router.post("/lookup/records", responses=BODY)
@needs("read")
def look_up_records(ctx: Ctx, body: schemas.RecordsLookup) -> schemas.RecordsAnswer:
    """Return the record that is the certified best of each function, and nothing else of it. Guests may ask, too.

    By that, a process with a compiled model learns whether there are better bests by now. With ``imported``, functions
    without a best have the record that was imported for them.
    """
    target_json = resolve(ctx, body.target).target_json
    records = ctx.database.lookup.records(body.functions, target_json)
    if body.imported:
        misses = [workload_hash for workload_hash in dict.fromkeys(body.functions) if workload_hash not in records]
        found = ctx.database.imports.schedules(misses, target_json)
        records |= {each.workload_hash: each.record_id for each in found}
    return schemas.RecordsAnswer(target=json.loads(target_json), records=records)


def _hashes(ctx: Context, functions: list[str | schemas.LoweredFunction]) -> list[str]:
    """Return the workload hash of each function; a sandbox computes those of functions given as modules."""
    modules = [function.data for function in functions if isinstance(function, schemas.LoweredFunction)]
    digests = iter(ctx.sandbox.digests(modules) if modules else ())
    return [function if isinstance(function, str) else next(digests) for function in functions]


def _module(module_json: str | None) -> schemas.ModulePayload | None:
    return None if module_json is None else schemas.ModulePayload(format="tvm-json", data=module_json)

"""``POST /workloads/lookup``: the bests of all functions of a model, or their records alone, in one request."""

from __future__ import annotations

import json
from collections.abc import Mapping

from fastapi import APIRouter, Response

from db.results.imports import ImportedSchedule
from loopwright import schemas
from service.bodies.route import ParsedRoute
from service.context import Context, Ctx
from service.fleet.offers import resolve
from service.identity.rights import needs
from service.problems import BODY
from service.workloads.sent import best_texts

router = APIRouter(prefix="/workloads", tags=["workloads"], route_class=ParsedRoute)


@router.post("/lookup", response_model=schemas.LookupAnswer, responses=BODY)
@needs("read")
def look_up(ctx: Ctx, body: schemas.Lookup) -> Response:
    """Return the certified best of each function, given as a workload hash or a lowered function. Guests may ask, too.

    The best is the fastest of the device classes with the target, or of the one that the request names. With
    ``imported``, functions without one have the schedule that was imported for them, which is not certified here.
    """
    if body.device_class is not None:
        ctx.database.devices.get(body.device_class)
    target_json = resolve(ctx, body.target).target_json
    hashes = _hashes(ctx, body.functions)
    known = best_texts(ctx, hashes, target_json, body.device_class)
    modules = ctx.database.workloads.modules(known) if body.modules else {}
    wanted = dict.fromkeys(hashes)
    misses = [workload_hash for workload_hash in wanted if workload_hash not in known]
    imported = ctx.database.imports.schedules(misses, target_json) if body.imported else ()
    hits = (
        f'{{"workload_hash":"{each}","best":{known[each]},"module":{_module(modules, each)}}}'
        for each in wanted
        if each in known
    )
    # Its parts are written already, most of them long ago.
    text = (
        f'{{"target":{target_json},"functions":{json.dumps(hashes)},"hits":[{",".join(hits)}],'
        f'"misses":{json.dumps(misses)},"imported":[{",".join(map(_imported, imported))}]}}'
    )
    return Response(text, media_type="application/json")


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


def _module(modules: Mapping[str, str], workload_hash: str) -> str:
    if workload_hash not in modules:
        return "null"
    return schemas.ModulePayload(format="tvm-json", data=modules[workload_hash]).model_dump_json(by_alias=True)


def _imported(schedule: ImportedSchedule) -> str:
    return schemas.ImportedSchedule(
        workload_hash=schedule.workload_hash,
        record_id=schedule.record_id,
        trace=json.loads(schedule.trace_json),
        codegen_version=schedule.codegen_version,
    ).model_dump_json(by_alias=True)

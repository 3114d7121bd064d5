"""The race of a gate: read the programs from the database, race them, and store the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

from db import Database
from db.views import ClaimedJob, GateView
from loopwright import schemas
from service.gates.reference import functions_of
from tuner.budget import Budget
from tuner.ports import Fleet, Meanwhile
from tuner.races import gate
from tuner.races.sequential import Estimate
from tuner.search.request import TuneRequest
from tuner.types import TaskSpec, Workload
from workers.child.walled_search import WalledSearch


def run(
    database: Database,
    claimed: ClaimedJob,
    stored: GateView,
    open_search: Callable[[TuneRequest], WalledSearch],
    fleet: Fleet,
    meanwhile: Meanwhile,
) -> None:
    """Race a job's functions with the functions of its reference. The search reads them, in a child behind walls.

    Raises LeaseLost, and what ``meanwhile`` raises.
    """
    state = schemas.GateState.model_validate(stored.request)
    candidate = functions_of(database.tasks.of_job(claimed.job.id))
    functions = [*state.reference, *candidate]
    hashes = list(dict.fromkeys(function.workload_hash for function in functions))
    workloads = {each: stored_workload(database, each) for each in hashes}
    request = TuneRequest([], claimed.job.target_json, None, Budget(max_trials=0), claimed.job.seed)
    with closing(open_search(request)) as search:
        outputs = {
            each: search.read(number, TaskSpec(workloads[each], 1), meanwhile) for number, each in enumerate(hashes)
        }
    programs = [_program(database, each, workloads, outputs) for each in functions]
    result = gate.compare(
        programs[: len(state.reference)],
        programs[len(state.reference) :],
        1.0 + state.max_slowdown,
        fleet,
        meanwhile=meanwhile,
        peak_flops=database.devices.peak_flops(claimed.job.device_class_id),
    )
    sources = {each.workload_hash: each.source for each in functions}
    on_wire = _on_wire(result, state.max_slowdown, sources)
    database.gates.store(claimed.job.id, claimed.lease_token, on_wire.model_dump(mode="json"))


def stored_workload(database: Database, workload_hash: str) -> Workload:
    """Return a workload with the name under which it was stored. Raise NotFound."""
    found = database.workloads.get(workload_hash)
    summary = found.summary
    return Workload(
        summary.hash, summary.family, summary.name, found.module_json, found.script, summary.args, summary.operation
    )


def _program(
    database: Database,
    function: schemas.ReferenceFunction,
    workloads: dict[str, Workload],
    outputs: dict[str, tuple[bool, ...]],
) -> gate.GateProgram:
    found = database.records.get(function.record_id)
    record, certificate = found.record, found.certificate
    return gate.GateProgram(
        function.name,
        function.weight,
        workloads[function.workload_hash],
        outputs[function.workload_hash],
        record.trace_json,
        record.median if certificate is None else certificate.best_median,
    )


def _on_wire(result: gate.GateResult, max_slowdown: float, sources: Mapping[str, str | None]) -> schemas.GateResult:
    return schemas.GateResult(
        verdict=result.verdict,
        max_slowdown=max_slowdown,
        slowdown=on_wire_range(result.slowdown),
        rounds=result.rounds,
        reference_us=result.reference * 1e6,
        candidate_us=result.candidate * 1e6,
        functions=_functions(result.functions, sources),
    )


def _functions(functions: Sequence[gate.GateOutcome], sources: Mapping[str, str | None]) -> list[schemas.GateFunction]:
    return [
        schemas.GateFunction(
            name=each.name,
            source=sources.get(each.workload_hash),
            workload_hash=each.workload_hash,
            change=each.change,
            reference_us=None if each.reference is None else each.reference * 1e6,
            candidate_us=None if each.candidate is None else each.candidate * 1e6,
            ratio=None if each.ratio is None else on_wire_range(each.ratio),
            message=each.message,
        )
        for each in functions
    ]


def on_wire_range(found: Estimate) -> schemas.Range:
    return schemas.Range(value=found.value, low=found.low, high=None if found.high == float("inf") else found.high)

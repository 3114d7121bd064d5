"""The race of an ablation: read the program from the database, race it with its neighbours, and store the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from db import Database
from db.views import ClaimedJob, RecordDetail
from loopwright import schemas
from service.gates.race import on_wire_range, stored_workload
from service.units import micros
from tuner.errors import SearchFailed
from tuner.inspection.answers import Variants
from tuner.ports import Fleet, Meanwhile
from tuner.races.ablation import Ablated, ablate


def run(
    database: Database,
    claimed: ClaimedJob,
    variants: Callable[[RecordDetail], Variants],
    fleet: Fleet,
    meanwhile: Meanwhile,
) -> None:
    """Race the program that the job ablates, if there is one and it has no result yet.

    ``variants`` returns up to `MOST` neighbours of a program. Raises SearchFailed, LeaseLost, NoDevice, and what
    ``meanwhile`` raises.
    """
    job = claimed.job
    stored = database.ablations.of_job(job.id)
    if stored is None or stored.result is not None:
        return
    found = database.records.get(stored.trial_id)
    trace_json = found.record.trace_json
    assert trace_json is not None, "a baseline has no decisions"
    neighbours = variants(found)
    if not neighbours.found:
        raise SearchFailed("each program that differs in one decision is refused, or is the same program")
    ablated = ablate(
        stored_workload(database, found.record.workload_hash),
        neighbours.outputs,
        trace_json,
        neighbours.found,
        fleet,
        meanwhile=meanwhile,
        peak_flops=database.devices.peak_flops(job.device_class_id),
    )
    result = schemas.AblationResult(neighbours=[_on_wire(each) for each in ablated])
    database.ablations.store(job.id, claimed.lease_token, result.model_dump(mode="json"))


def _on_wire(ablated: Ablated) -> schemas.Neighbour:
    return schemas.Neighbour(
        changes=[schemas.DecisionChange(**asdict(change)) for change in ablated.changes],
        us=micros(ablated.seconds),
        slowdown=None if ablated.slowdown is None else on_wire_range(ablated.slowdown),
        message=ablated.message,
    )

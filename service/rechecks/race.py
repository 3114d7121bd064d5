"""The races of a job's rechecks: read the programs from the database, race them, and store the results."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from db import Database
from db.results.certificates import conditions
from db.views import ClaimedJob, RecheckView
from loopwright import schemas
from loopwright.codegen.kinds import RecheckVerdict
from service.gates.race import on_wire_range, stored_workload
from service.units import micros
from tuner.budget import Budget
from tuner.errors import SearchFailed
from tuner.ports import Fleet, Meanwhile, Search
from tuner.races.recheck import Certified, RecheckResult, recheck
from tuner.search.request import TuneRequest
from tuner.types import TaskSpec
from workers.child.walled_search import WalledSearch


def run(
    database: Database,
    claimed: ClaimedJob,
    open_search: Callable[[TuneRequest], WalledSearch],
    fleet: Fleet,
    meanwhile: Meanwhile,
) -> None:
    """Race the bests that the job has not raced yet. The search reads their functions, in a child behind walls.

    Raises LeaseLost, NoDevice, and what ``meanwhile`` raises.
    """
    left = [view for view in database.rechecks.of_job(claimed.job.id) if view.result is None]
    if not left:
        return
    request = TuneRequest([], claimed.job.target_json, None, Budget(max_trials=0), claimed.job.seed)
    runtime = database.devices.get(claimed.job.device_class_id).runtime
    peak_flops = database.devices.peak_flops(claimed.job.device_class_id)
    with closing(open_search(request)) as search:
        for number, view in enumerate(left):
            result = _raced(database, number, view, search, fleet, meanwhile, peak_flops)
            on_wire = _on_wire(result, runtime).model_dump(mode="json")
            database.rechecks.store(
                claimed.job.id, claimed.lease_token, view.certificate_id, on_wire, holds=result.verdict.holds
            )


def _raced(
    database: Database,
    number: int,
    view: RecheckView,
    search: Search,
    fleet: Fleet,
    meanwhile: Meanwhile,
    peak_flops: float | None,
) -> RecheckResult:
    workload = stored_workload(database, view.workload_hash)
    try:
        outputs = search.read(number, TaskSpec(workload, 1), meanwhile)
    except SearchFailed as error:
        return RecheckResult(RecheckVerdict.UNCLEAR, 0, message=str(error))
    certified = Certified(workload, outputs, view.trace_json, view.best_median, view.baseline_median)
    return recheck(certified, fleet, meanwhile=meanwhile, peak_flops=peak_flops)


def _on_wire(result: RecheckResult, runtime: str) -> schemas.RecheckResult:
    return schemas.RecheckResult(
        verdict=result.verdict,
        rounds=result.rounds,
        slowdown=None if result.slowdown is None else on_wire_range(result.slowdown),
        best_us=micros(result.best),
        baseline_us=micros(result.baseline),
        conditions=None if result.system is None else conditions(runtime, result.system),
        message=result.message,
    )

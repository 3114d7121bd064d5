"""Metrics that are read from the database at each request. All API processes return the same values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client import Metric

from db import Database
from db.counts import Counts
from db.states import LeaseLoss
from db.upkeep.gauges import WorkerGauge
from loopwright.codegen.kinds import FailureKind, JobState
from service.api import metric_catalogue as catalogue

MEASURED = "measured"


def fleet_metrics(database: Database, live_seconds: float) -> Iterator[Metric]:
    """Yield the metrics from the database. A worker that was not seen for ``live_seconds`` is lost."""
    counts = database.counts()
    yield from _queue(database, counts)
    yield from _trials(counts)
    yield from _workers(database.gauges.workers(live_seconds), database.gauges.wanted_devices())
    outbox = database.gauges.outbox()
    deliveries = catalogue.WEBHOOK_DELIVERIES.gauge()
    deliveries.add_metric(["pending"], outbox.pending)
    deliveries.add_metric(["retrying"], outbox.retrying)
    deliveries.add_metric(["given_up"], outbox.given_up)
    yield deliveries


def schema_metric(database: Database) -> Metric:
    return catalogue.SCHEMA.info({"revision": database.gauges.revision()})


def _queue(database: Database, counts: Counts) -> Iterator[Metric]:
    jobs = catalogue.JOBS.gauge()
    for state in JobState:
        jobs.add_metric([state.value], counts.jobs.get(state, 0))
    yield jobs
    queue = database.gauges.queue()
    yield catalogue.OLDEST_QUEUED_JOB_AGE_SECONDS.gauge(queue.oldest_secs)
    leases = catalogue.LEASES.gauge()
    leases.add_metric(["held"], queue.leases)
    leases.add_metric(["expired"], queue.expired)
    yield leases
    lost = catalogue.LEASES_LOST.counter()
    for cause in LeaseLoss:
        lost.add_metric([cause.value], counts.lease_losses.get(cause, 0))
    yield lost
    yield catalogue.JOB_RECLAIMS.gauge(queue.reclaims)
    yield catalogue.JOB_CLAIMS_MAX.gauge(queue.most_claims)
    use = database.gauges.use()
    yield catalogue.JOBS_SUBMITTED.counter(use.jobs)
    yield catalogue.DEVICE_SECONDS.counter(use.device_secs)


def _trials(counts: Counts) -> Iterator[Metric]:
    finished = catalogue.TRIALS_FINISHED.counter()
    for outcome in dict.fromkeys([MEASURED, *(kind.value for kind in FailureKind), *counts.trials]):
        finished.add_metric([outcome], counts.trials.get(outcome, 0))
    yield finished
    yield catalogue.TRIALS_PROPOSED.gauge(counts.proposed)


def _workers(workers: list[WorkerGauge], wanted: dict[str, int]) -> Iterator[Metric]:
    fleet = catalogue.WORKERS.gauge()
    tally = Counter((worker.device_class_id, _state(worker)) for worker in workers)
    for device_class in sorted({worker.device_class_id for worker in workers}):
        for state in ("measuring", "quarantined", "drained", "lost"):
            fleet.add_metric([device_class, state], tally[device_class, state])
    yield fleet
    devices = catalogue.DEVICES_WANTED.gauge()
    for device_class in sorted({*wanted, *(worker.device_class_id for worker in workers)}):
        devices.add_metric([device_class], wanted.get(device_class, 0))
    yield devices
    builders = catalogue.WORKER_BUILDERS.gauge()
    busy = catalogue.WORKER_BUILDERS_BUSY.gauge()
    use = catalogue.WORKER_SLOT_USE_RATIO.gauge()
    seen = catalogue.WORKER_LAST_SEEN_TIMESTAMP_SECONDS.gauge()
    for worker in workers:
        if not worker.alive:
            continue
        builders.add_metric([worker.id], worker.builders)
        busy.add_metric([worker.id], worker.builders_busy)
        seen.add_metric([worker.id], worker.last_seen_at.timestamp())
        if worker.slot_use is not None:
            use.add_metric([worker.id], worker.slot_use)
    yield from (builders, busy, use, seen)


def _state(worker: WorkerGauge) -> str:
    if not worker.alive:
        return "lost"
    if worker.quarantined:
        return "quarantined"
    return "drained" if worker.drained else "measuring"

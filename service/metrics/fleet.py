"""Figures that are read from the database when they are asked for. Every API process answers with the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

from db import Database
from db.counts import Counts
from db.gauges import WorkerGauge
from db.states import JobState, LeaseLoss
from tuner.types import FailureKind

MEASURED = "measured"


def fleet_metrics(database: Database, live_seconds: float) -> Iterator[Metric]:
    """Yield what the database knows; ``live_seconds``: a worker that was not seen for so long is lost."""
    counts = database.counts()
    yield from _queue(database, counts)
    yield from _trials(counts)
    yield from _workers(database.gauges.workers(live_seconds))
    outbox = database.gauges.outbox()
    deliveries = GaugeMetricFamily(
        "loopwright_webhook_deliveries",
        "Messages to webhooks: pending, retrying after a failure, given_up of the last week. From the database.",
        labels=["state"],
    )
    deliveries.add_metric(["pending"], outbox.pending)
    deliveries.add_metric(["retrying"], outbox.retrying)
    deliveries.add_metric(["given_up"], outbox.given_up)
    yield deliveries


def schema_metric(database: Database) -> Metric:
    return InfoMetricFamily(
        "loopwright_schema",
        "Revision of the database's tables. From the database.",
        value={"revision": database.gauges.revision()},
    )


def _queue(database: Database, counts: Counts) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("loopwright_jobs", "Jobs by state. From the database.", labels=["state"])
    for state in JobState:
        jobs.add_metric([state.value], counts.jobs.get(state, 0))
    yield jobs
    queue = database.gauges.queue()
    yield GaugeMetricFamily(
        "loopwright_oldest_queued_job_age_seconds",
        "For how long the oldest queued job has waited; 0 if none is queued. From the database.",
        value=queue.oldest_secs,
    )
    leases = GaugeMetricFamily(
        "loopwright_leases",
        "Running jobs whose controller still has its lease (held), or has lost it (expired). From the database.",
        labels=["state"],
    )
    leases.add_metric(["held"], queue.leases)
    leases.add_metric(["expired"], queue.expired)
    yield leases
    lost = CounterMetricFamily(
        "loopwright_leases_lost",
        "Leases of jobs that were lost: not renewed in time (expired), or its loop died (died). From the database.",
        labels=["cause"],
    )
    for cause in LeaseLoss:
        lost.add_metric([cause.value], counts.lease_losses.get(cause, 0))
    yield lost
    yield GaugeMetricFamily(
        "loopwright_job_reclaims",
        "Claims beyond the first of all jobs that have not ended: how often leases were lost. From the database.",
        value=queue.reclaims,
    )
    yield GaugeMetricFamily(
        "loopwright_job_claims_max",
        "Claims of the job that has the most, of those that have not ended. From the database.",
        value=queue.most_claims,
    )
    use = database.gauges.use()
    yield CounterMetricFamily("loopwright_jobs_submitted", "Jobs submitted. From the database.", value=use.jobs)
    yield CounterMetricFamily(
        "loopwright_device_seconds", "Seconds in measuring slots. From the database.", value=use.device_secs
    )


def _trials(counts: Counts) -> Iterator[Metric]:
    finished = CounterMetricFamily(
        "loopwright_trials_finished",
        "Trials that have ended, by outcome: measured, or the kind of failure. From the database.",
        labels=["outcome"],
    )
    for outcome in dict.fromkeys([MEASURED, *(kind.value for kind in FailureKind), *counts.trials]):
        finished.add_metric([outcome], counts.trials.get(outcome, 0))
    yield finished
    yield GaugeMetricFamily(
        "loopwright_trials_proposed", "Trials that wait for their outcome. From the database.", value=counts.proposed
    )


def _workers(workers: list[WorkerGauge]) -> Iterator[Metric]:
    fleet = GaugeMetricFamily(
        "loopwright_workers",
        "Workers by device class and state: measuring, quarantined, drained, or lost within a day. From the database.",
        labels=["device_class", "state"],
    )
    tally = Counter((worker.device_class_id, _state(worker)) for worker in workers)
    for device_class in sorted({worker.device_class_id for worker in workers}):
        for state in ("measuring", "quarantined", "drained", "lost"):
            fleet.add_metric([device_class, state], tally[device_class, state])
    yield fleet
    builders = GaugeMetricFamily(
        "loopwright_worker_builders", "Builders of each live worker. From the database.", labels=["worker"]
    )
    busy = GaugeMetricFamily(
        "loopwright_worker_builders_busy",
        "Builders that were building at the last heartbeat of each live worker. From the database.",
        labels=["worker"],
    )
    use = GaugeMetricFamily(
        "loopwright_worker_slot_use_ratio",
        "Share of the time between its last two heartbeats in which a live worker was measuring. From the database.",
        labels=["worker"],
    )
    seen = GaugeMetricFamily(
        "loopwright_worker_last_seen_timestamp_seconds",
        "When each live worker was seen last, in seconds since 1970. From the database.",
        labels=["worker"],
    )
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

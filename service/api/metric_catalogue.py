"""Every metric of Loopwright's own: its name, type, labels and meaning. The reference lists them."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily


class Source(enum.StrEnum):
    """Where the figures of a metric come from. The HELP text ends with it."""

    DATABASE = "From the database."
    """The same from every API process."""
    PROCESS = "Of this process."


@dataclass(frozen=True, slots=True)
class Described:
    """A metric. ``kind`` is Prometheus' type, of which ``info`` is exposed as a gauge that is 1."""

    kind: str
    base: str
    meaning: str
    source: Source
    labels: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name in queries."""
        suffix = {"counter": "_total", "info": "_info"}.get(self.kind, "")
        return f"{self.base}{suffix}"

    @property
    def exposed_kind(self) -> str:
        """The type that ``/metrics`` states."""
        return "gauge" if self.kind == "info" else self.kind

    @property
    def help(self) -> str:
        return f"{self.meaning} {self.source}"

    def gauge(self, value: float | None = None) -> GaugeMetricFamily:
        """Return the gauge, with a value unless it has labels."""
        return GaugeMetricFamily(self.base, self.help, value=value, labels=self.labels or None)

    def counter(self, value: float | None = None) -> CounterMetricFamily:
        """Return the counter, with a value unless it has labels."""
        return CounterMetricFamily(self.base, self.help, value=value, labels=self.labels or None)

    def info(self, value: dict[str, str]) -> InfoMetricFamily:
        return InfoMetricFamily(self.base, self.help, value=value)


JOBS = Described(
    "gauge", "loopwright_jobs", "Jobs by state: queued is the depth of the queue.", Source.DATABASE, ("state",)
)
OLDEST_QUEUED_JOB_AGE_SECONDS = Described(
    "gauge",
    "loopwright_oldest_queued_job_age_seconds",
    "For how long the oldest queued job has waited; 0 if none is queued.",
    Source.DATABASE,
)
JOBS_SUBMITTED = Described("counter", "loopwright_jobs_submitted", "Jobs submitted.", Source.DATABASE)
LEASES = Described(
    "gauge",
    "loopwright_leases",
    "Running jobs whose controller still has its lease (held), or has lost it (expired).",
    Source.DATABASE,
    ("state",),
)
LEASES_LOST = Described(
    "counter",
    "loopwright_leases_lost",
    "Leases of jobs that were lost: not renewed in time (expired), because who had it died or was held up, or given "
    "back because the job's loop died (died).",
    Source.DATABASE,
    ("cause",),
)
JOB_RECLAIMS = Described(
    "gauge",
    "loopwright_job_reclaims",
    "Claims beyond the first of all jobs that have not ended: how often their leases were lost or given back.",
    Source.DATABASE,
)
JOB_CLAIMS_MAX = Described(
    "gauge",
    "loopwright_job_claims_max",
    "Claims of the job that has the most, of those that have not ended.",
    Source.DATABASE,
)
TRIALS_FINISHED = Described(
    "counter",
    "loopwright_trials_finished",
    "Trials that have ended, by outcome: measured, or the kind of failure. Its rate is trials per second.",
    Source.DATABASE,
    ("outcome",),
)
TRIALS_PROPOSED = Described(
    "gauge", "loopwright_trials_proposed", "Trials that wait for their outcome.", Source.DATABASE
)
DEVICE_SECONDS = Described(
    "counter", "loopwright_device_seconds", "Seconds that trials were in measuring slots.", Source.DATABASE
)
WORKERS = Described(
    "gauge",
    "loopwright_workers",
    "Workers by state: measuring, quarantined, drained, or lost (not seen for 20 s, but within a day).",
    Source.DATABASE,
    ("device_class", "state"),
)
DEVICES_WANTED = Described(
    "gauge",
    "loopwright_devices_wanted",
    "Devices that jobs could use: one for each job that waits or runs. What to compare with the workers that measure.",
    Source.DATABASE,
    ("device_class",),
)
WORKER_SLOT_USE_RATIO = Described(
    "gauge",
    "loopwright_worker_slot_use_ratio",
    "Share of the time between its last two heartbeats in which a live worker was measuring.",
    Source.DATABASE,
    ("worker",),
)
WORKER_BUILDERS = Described(
    "gauge", "loopwright_worker_builders", "Builders of each live worker.", Source.DATABASE, ("worker",)
)
WORKER_BUILDERS_BUSY = Described(
    "gauge",
    "loopwright_worker_builders_busy",
    "Builders of each live worker that were building at its last heartbeat.",
    Source.DATABASE,
    ("worker",),
)
WORKER_LAST_SEEN_TIMESTAMP_SECONDS = Described(
    "gauge",
    "loopwright_worker_last_seen_timestamp_seconds",
    "When each live worker was seen last, in seconds since 1970.",
    Source.DATABASE,
    ("worker",),
)
WEBHOOK_DELIVERIES = Described(
    "gauge",
    "loopwright_webhook_deliveries",
    "Messages to webhooks: pending, retrying after a failure, given_up of the last week.",
    Source.DATABASE,
    ("state",),
)
SCHEMA = Described("info", "loopwright_schema", "Revision of the database's tables.", Source.DATABASE, ("revision",))
DATABASE_UP = Described(
    "gauge",
    "loopwright_database_up",
    "Whether the database answers: 1 or 0. While it is 0, the metrics from the database are missing.",
    Source.PROCESS,
)
DATABASE_CONNECTIONS = Described(
    "gauge",
    "loopwright_database_connections",
    "Connections to the database: used by a transaction, or idle.",
    Source.PROCESS,
    ("state",),
)
DATABASE_CONNECTIONS_MAX = Described(
    "gauge", "loopwright_database_connections_max", "The most connections that there can be.", Source.PROCESS
)
HTTP_REQUEST_DURATION_SECONDS = Described(
    "histogram",
    "loopwright_http_request_duration_seconds",
    "From the head of a request to that of its answer. route is a template such as /api/v1/jobs/{job_id}, or other; "
    "status is a class such as 2xx.",
    Source.PROCESS,
    ("route", "method", "status"),
)
HTTP_REQUESTS_IN_FLIGHT = Described(
    "gauge",
    "loopwright_http_requests_in_flight",
    "Requests that are not answered to their end yet, event streams among them.",
    Source.PROCESS,
)
EVENT_STREAMS = Described("gauge", "loopwright_event_streams", "Event streams that are open.", Source.PROCESS)
SANDBOX_CALLS = Described(
    "gauge",
    "loopwright_sandbox_calls",
    "Calls that read modules or render programs: running in a child, or waiting for one.",
    Source.PROCESS,
    ("state",),
)
SANDBOX_CHILDREN = Described("gauge", "loopwright_sandbox_children", "Children that calls can run in.", Source.PROCESS)
BUILD = Described(
    "info",
    "loopwright_build",
    "Versions of Loopwright and of TVM, and the revision of tables that the code was written for.",
    Source.PROCESS,
    ("version", "tvm", "revision"),
)

METRICS = tuple(each for each in list(globals().values()) if isinstance(each, Described))
"""In the order of the reference."""

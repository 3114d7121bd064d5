"""Monitor the workers: their current work, the speed of their reference kernel, and their quarantine."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import ray

from db import Database
from db.inputs import WorkerReport
from db.views import CheckView, Peaks, WorkerStanding
from service.api.liveness import LIVE_SECONDS
from service.fleet.health import LOST_WITHIN_SECONDS, complaint
from tuner.types import Activity, Failure
from workers.messages import DeviceSpeed
from workers.ray import actor_calls
from workers.ray.actor_calls import Pending
from workers.ray.cluster import Cluster, Offer

CHECK_SECONDS = 60.0
"""Between two timings of a worker's reference kernel, where its slot is free, and jobs wait or it is in quarantine."""
_OVERDUE = 5
"""After so many times that long it is timed while there are no jobs, and between two batches of a slot in use."""
_PING_SECONDS = 2.0
LOST_SECONDS = 120.0
"""A worker that was not seen for so long is lost. One that is restarted is back sooner. Not tuned."""
_LOST_RECENTLY_SECONDS = 3600.0
"""Of one that was lost longer ago, nothing is said any more."""

log = logging.getLogger("loopwright.watch")


class Watch:
    """Called at each heartbeat of a controller. Several controllers share the work through the database."""

    def __init__(self, database: Database, cluster: Cluster) -> None:
        self._db = database
        self._cluster = cluster
        self._measured: set[str] = set()
        self._timings: dict[str, tuple[Offer, Pending[DeviceSpeed | Failure]]] = {}
        """Reference kernels that are being timed, by offer id."""
        self._began: float | None = None
        self._missing: set[str] = set()
        self.drained: frozenset[str] = frozenset()
        """Workers that get no new jobs, as of the last heartbeat. What they are at ends by itself."""
        self._answered: dict[str, float] = {}
        """When the actors of each offer last said what they do."""
        self._newest_check = 0
        self._checks: dict[str, tuple[CheckView, ...]] = {}
        """Of each worker, as of the newest check."""

    def beat(self, offers: Sequence[Offer]) -> set[str]:
        """Register the answering offers as seen now, and update the health of all workers.

        Return the ids of the workers that may not measure.
        """
        activity = self._cluster.activity(_PING_SECONDS)
        now = time.monotonic()
        answering = []
        for offer in offers:
            if offer.id in activity or offer.id not in self._answered:  # that of a new one has answered just before
                self._answered[offer.id] = now
                answering.append(offer)
        self._db.workers.register(*(_report(offer, activity.get(offer.id, Activity())) for offer in answering))
        self._collect()
        self._look_for_missing()
        self.drained = self._db.workers.drained()
        self._newest_check, changed = self._db.workers.checks_after(self._newest_check)
        self._checks |= changed
        standings, lost = self._db.workers.standings(), self._db.workers.lost(LOST_WITHIN_SECONDS)
        is_idle = not self._db.jobs.are_unfinished()
        for offer in offers:
            if offer.id in activity:
                standing = standings[offer.id]
                is_free = standing.slot_since is None
                is_well = standing.quarantine_reason is None
                self._ask(offer, standing, seldom=not is_free or (is_idle and is_well))
        known = [offer.id for offer in offers if offer.id in standings]
        return {id for id in known if self._judge(id, standings[id], lost.get(id, 0))}

    def is_silent(self, offer: Offer) -> bool:
        """Return whether the offer's actors have not answered for so long that it is shown as not alive."""
        return time.monotonic() - self._answered.get(offer.id, 0.0) > LIVE_SECONDS

    def _look_for_missing(self) -> None:
        """Say which workers are not seen any more. While no controller was there, none could be seen."""
        now = time.monotonic()
        self._began = self._began or now
        if now - self._began <= LOST_SECONDS:
            return
        missing = set(self._db.workers.missing(LOST_SECONDS, _LOST_RECENTLY_SECONDS))
        for worker_id in sorted(missing - self._missing):
            log.warning("%s was not seen for %.0f s", worker_id, LOST_SECONDS, extra={"worker": worker_id})
            self._db.workers.tell_missing(worker_id, LOST_SECONDS)
        self._missing = missing

    def _ask(self, offer: Offer, standing: WorkerStanding, *, seldom: bool) -> None:
        """Have the reference kernels timed, if it is time; the answer comes at a later heartbeat."""
        if offer.id in self._timings:
            return
        actor = self._cluster.measurer(offer)
        if actor is None:
            return
        if offer.id not in self._measured:
            self._measured.add(offer.id)
            self._timings[offer.id] = offer, actor_calls.PEAKS(actor, offer.device_class.target_json)
            return
        checks = self._checks_of(offer.id, standing)
        age = (self._db.now() - checks[-1].created_at).total_seconds() if checks else float("inf")
        if age > CHECK_SECONDS * (_OVERDUE if seldom else 1):
            self._timings[offer.id] = offer, actor_calls.CHECK(actor, offer.device_class.target_json)

    def _collect(self) -> None:
        if not self._timings:
            return
        references = [timing.reference for _, timing in self._timings.values()]
        ready, _ = ray.wait(references, num_returns=len(references), timeout=0)
        for offer, timing in list(self._timings.values()):
            if timing.reference in ready:
                del self._timings[offer.id]
                self._record(offer, timing)

    def _record(self, offer: Offer, timing: Pending[DeviceSpeed | Failure]) -> None:
        try:
            speed = timing.result()
        except ray.exceptions.RayError as error:
            log.warning("the reference kernel of %s failed: %s", offer.id, error, extra={"worker": offer.id})
            return
        if isinstance(speed, Failure):
            log.warning("the reference kernel of %s failed: %s", offer.id, speed.message, extra={"worker": offer.id})
            return
        self._db.workers.add_check(offer.id, speed.secs)
        peaks = Peaks(speed.dtype, speed.flops, speed.bytes_per_s or 0.0, datetime.now(UTC), speed.caches)
        self._db.devices.put_peaks(offer.device_class, peaks)

    def _judge(self, worker_id: str, standing: WorkerStanding, lost: int) -> bool:
        """Return whether the worker is held out, and store it where that has changed."""
        reason = complaint(self._checks_of(worker_id, standing), lost)
        if reason != standing.quarantine_reason:
            log.warning("%s: %s", worker_id, reason or "measures again", extra={"worker": worker_id})
            self._db.workers.quarantine(worker_id, reason)
        return reason is not None

    def _checks_of(self, worker_id: str, standing: WorkerStanding) -> Sequence[CheckView]:
        """Return the checks since the worker was last cleared."""
        checks, since = self._checks.get(worker_id, ()), standing.readmitted_at
        return [check for check in checks if since is None or check.created_at > since]


def _report(offer: Offer, activity: Activity) -> WorkerReport:
    return WorkerReport(
        offer.id,
        offer.host,
        offer.device,
        offer.device_class,
        sum(offer.builders.values()),
        offer.sandbox,
        offer.labels,
        activity,
    )

"""Keeping an eye on the workers: what they are at, how fast their reference kernel is, which may not measure now."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import ray

from db import Database
from db.views import Peaks, WorkerView
from service.fleet.health import LOST_WITHIN_SECONDS, complaint
from workers.cluster import NAMESPACE, Cluster, Offer

CHECK_SECONDS = 60.0
"""Between two timings of a worker's reference kernel, where its slot is free."""
_OVERDUE = 5
"""After so many times that long it is timed between two batches of a slot that is never free."""
_PING_SECONDS = 2.0

log = logging.getLogger("loopwright.watch")


class Watch:
    """Called at each heartbeat of a controller. Several controllers share the work by what the database says."""

    def __init__(self, database: Database, cluster: Cluster) -> None:
        self._db = database
        self._cluster = cluster
        self._measured: set[str] = set()
        self._asked: dict[Any, Offer] = {}

    def beat(self, offers: Sequence[Offer]) -> set[str]:
        """Register the offers as seen now, look after their health; returns the ids of those that may not measure."""
        activity = self._cluster.activity(_PING_SECONDS)
        for offer in offers:
            self._db.workers.register(
                offer.id,
                host=offer.host,
                device=offer.device,
                device_class=offer.device_class,
                builders=len(offer.builders),
                **({"activity": activity[offer.id]} if offer.id in activity else {}),
            )
        self._collect()
        views = {view.id: view for view in self._db.workers.all(live_within=CHECK_SECONDS)}
        for offer in offers:
            self._ask(offer, views[offer.id])
        return {offer.id for offer in offers if self._judge(views[offer.id])}

    def _ask(self, offer: Offer, view: WorkerView) -> None:
        """Have the reference kernels timed, if it is time; the answer comes at a later heartbeat."""
        if offer.id in {asked.id for asked in self._asked.values()}:
            return
        try:
            actor = ray.get_actor(offer.measurer, NAMESPACE)
        except ValueError:
            return  # it has just gone, with its node
        if offer.id not in self._measured:
            self._measured.add(offer.id)
            self._asked[actor.peaks.remote(offer.device_class.target_json)] = offer
            return
        age = (datetime.now(UTC) - view.checks[-1].created_at).total_seconds() if view.checks else float("inf")
        if age > CHECK_SECONDS * (1 if view.activity.slot_since is None else _OVERDUE):
            self._asked[actor.check.remote(offer.device_class.target_json)] = offer

    def _collect(self) -> None:
        if not self._asked:
            return
        ready, _ = ray.wait(list(self._asked), num_returns=len(self._asked), timeout=0)
        for reference in ready:
            offer = self._asked.pop(reference)
            try:
                answer = ray.get(reference)
            except ray.exceptions.RayError as error:
                answer = {"failure": {"message": str(error)}}
            if "failure" in answer:
                log.warning("the reference kernel of %s failed: %s", offer.id, answer["failure"]["message"])
                continue
            self._db.workers.add_check(offer.id, answer["secs"])
            now = datetime.now(UTC)
            peaks = Peaks(answer["dtype"], answer["flops"], answer.get("bytes_per_s", 0.0), now)
            self._db.devices.put_peaks(offer.device_class, peaks)

    def _judge(self, view: WorkerView) -> bool:
        """Whether the worker is held out; the database is told when that changes."""
        reason = complaint(view.checks, self._db.workers.lost(view.id, LOST_WITHIN_SECONDS))
        if reason != view.quarantine_reason:
            log.warning("%s: %s", view.id, reason or "measures again")
            self._db.workers.quarantine(view.id, reason)
        return reason is not None

"""Housekeeping of the database, in a thread of the controller: tallies are added up, and what is old is deleted."""

from __future__ import annotations

import logging
import random
import threading

from db import Database
from db.errors import Unavailable
from db.retention import Ages, Swept
from service.settings import Settings

_ROUND_SECONDS = 60.0
"""Between two rounds, give or take a half: controllers that were started together do not come together."""
_JOBS = 100
"""That one round looks through: 144,000 a day. Not tuned."""
_PAUSE_SECONDS = 0.05
"""Between two transactions, for who waits to write into a file. Not tuned."""
_CORRECTED = 60
"""One of so many rounds counts all jobs anew. Not tuned."""
_DELIVERY_DAYS = 30
"""For deliveries of webhooks."""
_WORKER_DAYS = 90
"""For workers that are not seen any more: names of containers do not come again."""

log = logging.getLogger("loopwright.housekeeping")


class Housekeeping:
    """Does rounds. Any number of controllers may do them at once; one that is cut off is continued by the next one."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._db = database
        self._jitter = random.Random()  # Python's own generator is left to whoever seeds it
        self._audit_days = settings.audit_days
        self._ages = Ages(settings.event_days, settings.trial_days, settings.job_days)

    def run(self, stop: threading.Event) -> None:
        """Do rounds until told to stop."""
        while not stop.wait(_ROUND_SECONDS * self._jitter.uniform(0.5, 1.5)):
            try:
                self.round(stop)
            except Unavailable as error:
                log.info("housekeeping waits: %s", error)
            except Exception:
                log.exception("a round of housekeeping has failed; the next one goes on")

    def round(self, stop: threading.Event) -> None:
        while self._db.tallies.add_up() and not stop.wait(_PAUSE_SECONDS):
            pass
        self._db.audit.forget(self._audit_days)
        self._db.webhooks.forget(_DELIVERY_DAYS)
        self._db.workers.forget(_WORKER_DAYS)
        if self._jitter.random() < 1 / _CORRECTED:
            self._db.job_counts.correct()
        self._sweep(stop)

    def _sweep(self, stop: threading.Event) -> None:
        job_ids = self._db.retention.due(self._ages, _JOBS)
        if not job_ids:
            return
        samples, swept = self._db.retention.samples() if self._ages.trials else set(), Swept()
        for job_id in job_ids:
            swept += self._db.retention.sweep(job_id, self._ages, samples)
            if stop.wait(_PAUSE_SECONDS):
                break
        log.info("deleted %d old events, %d trials and %d jobs", swept.events, swept.trials, swept.jobs)

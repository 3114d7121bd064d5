"""Outages of the database: the work on a job waits, and continues when the database answers."""

from __future__ import annotations

import logging
import threading
import time

from db import Database, revisions
from db.errors import AccessRefused, Unavailable

PATIENCE_SECONDS = 600.0
"""After so long without the database a process gives up. Not tuned."""
START_SECONDS = 60.0
"""For the database at the start of a process: it may be starting, too. Not tuned."""
_FIRST_STEP_SECONDS = 0.1
_LONGEST_STEP_SECONDS = 1.0
"""Between two questions whether the database answers."""

log = logging.getLogger("loopwright.outage")


class Outage:
    """The outages that one thread meets, one after another."""

    def __init__(self, database: Database, patience: float = PATIENCE_SECONDS) -> None:
        self._db = database
        self._patience = patience
        self._since: float | None = None
        self._step = _FIRST_STEP_SECONDS

    def sit_out(self, error: Unavailable, stop: threading.Event | None = None) -> None:
        """Return when the database answers again, or when told to stop. Raises ``error`` when patience is over.

        Call `over` when the work has continued: a database may answer and still fail at a write, for example if its
        disk is full.
        """
        if self._since is None:
            self._since = time.monotonic()
            log.warning(
                "%s. Work waits for the database for up to %.0f minutes and then continues", error, self._patience / 60
            )
        stop = stop or threading.Event()
        while True:
            if time.monotonic() - self._since > self._patience:
                raise error
            if stop.wait(self._step):
                return
            self._step = min(2 * self._step, _LONGEST_STEP_SECONDS)
            try:
                self._db.ping()
                return
            except Unavailable as again:
                error = again

    def over(self) -> None:
        """Note that work has continued, so an outage, if there was one, is over."""
        if self._since is not None:
            log.warning("the database works again after %.0f s", time.monotonic() - self._since)
            self._since, self._step = None, _FIRST_STEP_SECONDS


def await_database(url: str, seconds: float = START_SECONDS) -> bool:
    """Wait until the database answers. Return whether this was necessary.

    Raises `Unavailable` when the time is over, AccessRefused at once, and `db.errors.SchemaTooNew`.
    """
    until = time.monotonic() + seconds
    step = 0.0
    while True:
        try:
            revisions.check(url)
            return step > 0
        except AccessRefused:
            raise
        except Unavailable as error:
            if time.monotonic() > until:
                raise
            if not step:
                log.warning("%s. Waiting for the database for up to %.0f s", error, seconds)
        step = min(2 * step or _FIRST_STEP_SECONDS, _LONGEST_STEP_SECONDS)
        time.sleep(step)

"""Decide which workers may measure, by regular timings of a reference kernel and by the trials that they lost."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from db.views import CheckView

FLAGGED = 1.25
"""Drift of the reference kernel from which on it is worth a look."""
TOO_FAR = 3.0
"""Drift from which on timings cannot be compared with earlier ones; neighbours that take half of the cores make two."""
LATEST = 3
"""Drift is the median of so many checks over the fastest: one slow check says nothing."""
LOST_WITHIN_SECONDS = 600.0
LOST_TOO_OFTEN = 3
"""Trials that ended in DEVICE_LOST within that time: each had been tried several times."""


@dataclass(frozen=True, slots=True)
class Drift:
    """``ratio``: the latest timings of the reference kernel over the fastest, 1 or more."""

    ratio: float

    @property
    def flagged(self) -> bool:
        return self.ratio > FLAGGED

    @property
    def too_far(self) -> bool:
        return self.ratio > TOO_FAR


def drift(checks: Sequence[CheckView]) -> Drift | None:
    """Return the drift of ``checks``, which include the fastest, as in `WorkerView`; None if there are too few."""
    if len(checks) <= LATEST:
        return None
    latest = statistics.median(check.secs for check in checks[-LATEST:])
    return Drift(latest / min(check.secs for check in checks))


def complaint(checks: Sequence[CheckView], lost: int) -> str | None:
    """Return why a worker may not measure now, as a message for its owner; None if it may."""
    found = drift(checks)
    if found is not None and found.too_far:
        return (
            f"its reference kernel takes {found.ratio:.2f} times as long as before; check what else runs on the "
            "machine. The kernel is timed again every minute, and the quarantine ends when its time is normal again"
        )
    if lost >= LOST_TOO_OFTEN:
        return (
            f"{lost} trials were lost with the device or its process in the last {LOST_WITHIN_SECONDS / 60:.0f} "
            "minutes; read the machine's log. The quarantine ends when these losses are older than that"
        )
    return None

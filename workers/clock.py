"""Marks that a child's function yields between its values, to stop and restart its deadline."""

from __future__ import annotations

import enum


class Clock(enum.StrEnum):
    """Handled by the child and its parent, and not passed to the caller. Each value restarts the deadline, too."""

    STOP = "stop"
    """The function waits for other processes, which have their own deadlines."""
    START = "start"
    """The deadline counts from now."""


WAIT_SECONDS = 3600.0
"""Deadline while the clock is stopped: longer than any process may hold what others wait for."""

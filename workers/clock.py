"""What a child's function yields beside its values, to say when its deadline counts."""

from __future__ import annotations

import enum


class Clock(enum.StrEnum):
    """Handled by the child and its parent; never handed on to the caller.

    A value that is yielded starts the deadline anew, too.
    """

    STOP = "stop"
    """What follows waits for others, who have deadlines of their own."""
    START = "start"
    """The deadline counts from now."""


WAIT_SECONDS = 3600.0
"""Where the clock stands still: longer than anybody may hold what others wait for."""

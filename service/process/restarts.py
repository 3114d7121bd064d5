"""Limits of restarts: how often a part of the service may exit before the service gives up, and the pauses."""

from __future__ import annotations

from collections import deque

MOST = 5
WITHIN_SECONDS = 600.0
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 10.0


class Restarts:
    """Of one part: `MOST` within `WITHIN_SECONDS`."""

    def __init__(self) -> None:
        self._at: deque[float] = deque()

    def pause(self, now: float) -> float | None:
        """Return the seconds until a part that exited ``now`` is started again; None if it has exited too often."""
        while self._at and now - self._at[0] > WITHIN_SECONDS:
            self._at.popleft()
        if len(self._at) == MOST:
            return None
        self._at.append(now)
        return min(_FIRST_PAUSE_SECONDS * 2 ** (len(self._at) - 1), _LONGEST_PAUSE_SECONDS)

    @property
    def count(self) -> int:
        """Return the number of recent restarts."""
        return len(self._at)

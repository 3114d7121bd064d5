"""How often a part of the service may end by itself before the service gives up, and how long it waits in between."""

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
        """Return the seconds until a part that has ended ``now`` is started again; None: it has ended too often."""
        while self._at and now - self._at[0] > WITHIN_SECONDS:
            self._at.popleft()
        if len(self._at) == MOST:
            return None
        self._at.append(now)
        return min(_FIRST_PAUSE_SECONDS * 2 ** (len(self._at) - 1), _LONGEST_PAUSE_SECONDS)

    @property
    def count(self) -> int:
        """Return how often the part was started again lately."""
        return len(self._at)

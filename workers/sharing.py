"""How the loops of one process share actors: of those that wait for one, the loop with the least left is next.

To serve the shortest first ends most jobs soonest, and the long ones hardly later. So that these still get on, the loop
that was served longest ago is next from time to time, whatever it has left.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping

_TRIAL_SECONDS = 0.25
"""A trial, for comparison of a job's trials with its time limit. Not tuned."""
_FAVOUR_SECONDS = 2.0
"""Between two turns of loops that were served longest ago. Not tuned."""
_WORD_SECONDS = 2.0
"""For so long a loop is believed that it waits: one that hangs must not hold up the others. Loops repeat it each
half second."""


class Sharing:
    """Counts the calls of all loops, and says which loop may make the next."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._changes = 0
        self._shares: list[Share] = []
        self._favoured: Share | None = None
        self._next_favour = clock() + _FAVOUR_SECONDS

    def share(self, priority: int = 0) -> Share:
        """Return what a new loop asks; it closes it at its end. Of two priorities the larger number is first."""
        with self._changed:
            share = Share(self, priority)
            self._shares.append(share)
        return share

    def _note_change(self) -> None:
        """Wake loops that wait; with the lock."""
        self._changes += 1
        self._changed.notify_all()

    def _count(self, actor: str) -> int:
        return sum(share.calls[actor] for share in self._shares)

    def _ahead_of(self, share: Share) -> list[Share]:
        """Return the loops that wait and are served before this one, with the lock."""
        now = self._clock()
        waiting = [each for each in self._shares if each.awaited and now - each.said < _WORD_SECONDS]
        if self._favoured not in waiting and now >= self._next_favour:
            self._favoured = min(waiting, key=lambda each: each.served, default=None)
            self._next_favour = now + _FAVOUR_SECONDS

        def rank(each: Share) -> tuple[bool, int, float]:
            return each is not self._favoured, -each.priority, each.seconds_left(now)

        # Of equals the first comes first.
        before = self._shares.index(share)
        return [each for each in waiting if (rank(each), self._shares.index(each)) < (rank(share), before)]


class Share:
    """One loop among the others. ``trials`` are left to it, until the time ``until`` of the clock at most."""

    def __init__(self, sharing: Sharing, priority: int) -> None:
        self.priority = priority
        self.trials = 0
        self.until = math.inf
        self.calls: Counter[str] = Counter()
        self.awaited: frozenset[str] = frozenset()
        """Actors to which the loop would make calls if it were its turn."""
        self.said = -math.inf
        """When it last told so."""
        self.served = -math.inf
        """When it last got an actor for which others might have waited."""
        self._sharing = sharing
        self._seen = math.inf
        """The number of changes when it first was refused an actor since it last waited."""

    def seconds_left(self, now: float) -> float:
        """Return roughly what the loop needs all actors for."""
        return max(0.0, min(self.trials * _TRIAL_SECONDS, self.until - now))

    def take(self, limits: Mapping[str, int]) -> str | None:
        """Count a call of one of these actors, the least busy, and return it.

        None if all have as many calls of all loops together as their limits say, or others are to be served first.
        """
        sharing = self._sharing
        with sharing._changed:
            kept = frozenset[str]().union(*(each.awaited for each in sharing._ahead_of(self)))
            free = {
                actor: calls / limit
                for actor, limit in limits.items()
                if actor not in kept and (calls := sharing._count(actor)) < limit
            }
            if not free:
                self._seen = min(self._seen, sharing._changes)
                return None
            actor = min(free, key=free.__getitem__)
            self.calls[actor] += 1
            self.served = sharing._clock()
            return actor

    def add(self, actor: str) -> None:
        """Count a call that is made whatever others wait for."""
        with self._sharing._changed:
            self.calls[actor] += 1

    def give_back(self, actor: str) -> None:
        """Count one call less."""
        with self._sharing._changed:
            self.calls[actor] -= 1
            self._sharing._note_change()

    def awaits(self, actors: Collection[str]) -> None:
        """Say what the loop waits for now, instead of what it said before."""
        with self._sharing._changed:
            before, self.awaited = self.awaited, frozenset(actors)
            self.said = self._sharing._clock()
            if not actors and self._sharing._favoured is self:
                self._sharing._favoured = None
            if before - self.awaited:
                self._sharing._note_change()

    def wait(self, seconds: float) -> bool:
        """Wait until something has changed since an actor was refused. Return False if nothing did in time."""
        with self._sharing._changed:
            changed = self._sharing._changed.wait_for(lambda: self._sharing._changes > self._seen, seconds)
            self._seen = math.inf
        return changed

    def close(self) -> None:
        """End the loop's calls and wishes."""
        with self._sharing._changed:
            self._sharing._shares.remove(self)
            self._sharing._note_change()

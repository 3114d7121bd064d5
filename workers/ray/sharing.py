"""How the loops of one process share actors: of the waiting loops, the one with the least remaining work is next.

To serve the shortest first ends most jobs soonest, and the long ones hardly later. So that these still get on, the loop
that was served longest ago is next from time to time, whatever it has left. A loop begins, which takes seconds of a
core, when few others of the same actors are ahead of it.

Loops call the actors that are their process's turn: all of them, unless `Sharing.restrict` says which.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

_TRIAL_SECONDS = 0.25
"""A trial, for comparison of a job's trials with its time limit. Not tuned."""
_FAVOUR_SECONDS = 1.0
"""Between two calls of loops that were served longest ago. Not tuned."""
_BEGIN_SECONDS = 30.0
"""After so long a loop begins whatever others do. Not tuned."""
_MORE_THAN_MEASURERS = 1
"""So many loops may be ahead of one that begins: a measurer is busy with one of them, while another searches. Not
tuned."""
_LOOK_SECONDS = 0.5
"""Between two questions of a loop that waits to begin, whether it is still to."""
_WORD_SECONDS = 2.0
"""For so long a loop is believed that it waits: one that hangs must not hold up the others. Loops repeat it each
half second."""
_GAP_SECONDS = 5.0
"""A loop that has neither calls nor wishes for so long wants no actor: a shorter gap is a search at work."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A loop that could use actors now. ``number`` tells it from all others; ``busy`` are actors that have its calls.

    ``seconds`` is an estimate of the time for which it needs them all, ``trials`` are left to it.
    """

    number: int
    priority: int
    seconds: float
    trials: int
    actors: frozenset[str]
    busy: frozenset[str]


class Sharing:
    """Counts the calls of all loops, and decides which loop may make the next call."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._changes = 0
        self._shares: list[Share] = []
        self._favoured: Share | None = None
        self._next_favour = clock() + _FAVOUR_SECONDS
        self._numbers = itertools.count()
        self._allowed: frozenset[str] | None = None
        """The actors that may be called; None: all."""
        self._valid: Callable[[], bool] = lambda: True
        """Whether these still may."""

    def share(self, priority: int = 0, builders: Collection[str] = (), measurers: Collection[str] = ()) -> Share:
        """Return what a new loop of these actors asks; it closes it at its end. The larger priority is first."""
        with self._changed:
            share = Share(
                self, priority, frozenset(builders) | frozenset(measurers), _MORE_THAN_MEASURERS + len(measurers)
            )
            self._shares.append(share)
        return share

    def restrict(self, actors: Collection[str], valid: Callable[[], bool]) -> None:
        """Let loops make new calls to these actors only, for as long as they are ``valid`` and until told anew."""
        with self._changed:
            before, self._allowed, self._valid = self._allowed, frozenset(actors), valid
            if before != self._allowed:
                self._note_change()

    def wishes(self) -> list[Wish]:
        """Return the wishes of the loops that have some, or had a moment ago; the loop that is next comes first."""
        with self._changed:
            now = self._clock()
            wishing = [each for each in self._shares if now - each.active_at < _GAP_SECONDS or any(each.calls.values())]
            return [
                Wish(
                    number=each.number,
                    priority=each.priority,
                    seconds=each.seconds_left(now),
                    trials=each.trials,
                    actors=each.actors,
                    busy=frozenset(+each.calls),
                )
                for each in sorted(wishing, key=self._order)
            ]

    def _note_change(self) -> None:
        """Wake loops that wait; with the lock."""
        self._changes += 1
        self._changed.notify_all()

    def _may_call(self, actor: str) -> bool:
        return self._allowed is None or (actor in self._allowed and self._valid())

    def _count(self, actor: str) -> int:
        return sum(share.calls[actor] for share in self._shares)

    def _ahead_of(self, share: Share) -> list[Share]:
        """Return the loops that wait and are served before this one, with the lock."""
        now = self._clock()
        waiting = [each for each in self._shares if each.awaited and now - each.reported_at < _WORD_SECONDS]
        if self._favoured not in waiting and now >= self._next_favour:
            self._favoured = min(waiting, key=lambda each: each.served, default=None)
            self._next_favour = now + _FAVOUR_SECONDS
        return [each for each in waiting if self._rank(each) < self._rank(share)]

    def _rank(self, share: Share) -> tuple[bool, int, float, int]:
        """Return what is smaller for a loop that is served earlier."""
        return share is not self._favoured, *self._order(share)

    def _order(self, share: Share) -> tuple[int, float, int]:
        """Return the same, whoever is favoured now. Of equals the first comes first."""
        return -share.priority, share.seconds_left(self._clock()), self._shares.index(share)

    def _count_ahead_of(self, share: Share) -> int:
        """Return how many loops of the same actors have begun that are ahead of this one, whether they wait or not."""
        begun = [each for each in self._shares if each.has_begun and each.actors & share.actors]
        return sum(self._order(each) < self._order(share) for each in begun)


class Share:
    """One loop among the others. ``trials`` are left to it, until the time ``until`` of the clock at most.

    It begins when at most ``most_ahead`` loops of its ``actors`` are ahead of it.
    """

    def __init__(self, sharing: Sharing, priority: int, actors: frozenset[str], most_ahead: int) -> None:
        self.number = next(sharing._numbers)
        self.priority = priority
        self.actors = actors
        self.most_ahead = most_ahead
        self.trials = 0
        self.until = math.inf
        self.calls: Counter[str] = Counter()
        self.awaited: frozenset[str] = frozenset()
        """Actors to which the loop would make calls if it were its turn."""
        self.reported_at = -math.inf
        """When it last told so."""
        self.active_at = -math.inf
        """When it last waited for an actor or gave one back."""
        self.has_begun = False
        self.served = -math.inf
        """When it last got an actor for which others might have waited."""
        self._sharing = sharing
        self._seen = math.inf
        """The number of changes when it first was refused an actor since it last waited."""

    def use(self, actors: Collection[str]) -> None:
        """Note that the loop uses these actors, too."""
        with self._sharing._changed:
            self.actors |= frozenset(actors)

    def seconds_left(self, now: float) -> float:
        """Return a rough estimate of the seconds for which the loop needs all actors."""
        return max(0.0, min(self.trials * _TRIAL_SECONDS, self.until - now))

    def begin(self, is_to: Callable[[], bool]) -> None:
        """Wait until few loops are ahead, or for so long as ``is_to`` says, which is asked twice a second."""
        sharing = self._sharing
        until = sharing._clock() + _BEGIN_SECONDS
        while not self.has_begun:
            with sharing._changed:
                may = sharing._changed.wait_for(self._may_begin, _LOOK_SECONDS)
                self.has_begun = may or sharing._clock() >= until
            if not self.has_begun and not is_to():
                self.has_begun = True

    def _may_begin(self) -> bool:
        return self._sharing._count_ahead_of(self) <= self.most_ahead

    @property
    def leads(self) -> bool:
        """Whether no other loop is ahead. One that follows is to keep actors busy, but with little at a time."""
        with self._sharing._changed:
            return self._sharing._count_ahead_of(self) == 0

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
                if actor not in kept and sharing._may_call(actor) and (calls := sharing._count(actor)) < limit
            }
            if not free:
                self._seen = min(self._seen, sharing._changes)
                return None
            actor = min(free, key=free.__getitem__)
            self.calls[actor] += 1
            self.served = sharing._clock()
            if sharing._favoured is self:
                sharing._favoured = None
            return actor

    def add(self, places: Mapping[str, int]) -> str | None:
        """Count a call of one of these actors, that with the fewest calls of this loop a place, and return it.

        The call is made whatever others wait for. None if none of the actors may be called now.
        """
        with self._sharing._changed:
            free = {name: self.calls[name] / count for name, count in places.items() if self._sharing._may_call(name)}
            if not free:
                return None
            actor = min(free, key=free.__getitem__)
            self.calls[actor] += 1
            return actor

    def give_back(self, actor: str) -> None:
        """Count one call less."""
        with self._sharing._changed:
            self.calls[actor] -= 1
            self.active_at = self._sharing._clock()
            self._sharing._note_change()

    def awaits(self, actors: Collection[str]) -> None:
        """Say what the loop waits for now, instead of what it said before."""
        with self._sharing._changed:
            before, self.awaited = self.awaited, frozenset(actors)
            self.reported_at = self._sharing._clock()
            if self.awaited:
                self.active_at = self.reported_at
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

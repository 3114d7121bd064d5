"""Actors of one kind, and the number of calls that each of them works on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ray.exceptions import ActorDiedError, ActorUnschedulableError, RayError

from tuner.errors import FleetDrained, NoDevice
from workers.names import living
from workers.sharing import Share


class ActorPool:
    """Lends the actor with the fewest calls; actors that died for good leave the pool.

    ``places`` maps names of actors to the number of calls that each works on at a time. ``share`` is that of the loop
    which makes the calls. An actor here is a Ray handle. Whoever takes one for a call
    gives it back when the call has ended. Names that no actor has any more, because its node has left, are passed over.
    """

    def __init__(self, places: Mapping[str, int], share: Share) -> None:
        self._places = places
        self._share = share
        self._drained = False
        self._name_of = {actor: name for name, actor in living(places).items()}
        self._calls: dict[Any, int] = dict.fromkeys(self._name_of, 0)

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._calls)

    def name_of(self, actor: Any) -> str:
        """Return the name of an actor that is, or was, in the pool."""
        return self._name_of[actor]

    @property
    def places(self) -> int:
        """The number of calls that the actors work on at a time."""
        return sum(self._places[name] for name in self.names)

    @property
    def names(self) -> list[str]:
        """The names of the actors in the pool."""
        return [self._name_of[actor] for actor in self._calls]

    @property
    def is_drained(self) -> bool:
        """Return whether no actor is left, and at least one was told to get no more calls."""
        return self._drained and not self._calls

    def drain(self, actor: Any) -> None:
        """Lend an actor no more; what it works on goes on."""
        self._drained |= self._calls.pop(actor, None) is not None

    def take(self) -> Any:
        """Return the actor with the fewest calls, and count one more.

        Raises NoDevice if no actor is left, or FleetDrained if that is what was asked for.
        """
        self._check()
        actor = min(self._calls, key=lambda actor: self._calls[actor] / self._places[self._name_of[actor]])
        self._share.add(self._name_of[actor])
        self._calls[actor] += 1
        return actor

    def take_if_below(self, limit: int, shared: int) -> Any | None:
        """Take an actor with fewer than ``limit`` calls a place of this loop, and ``shared`` of all, if it is its turn.

        Raises what `take` raises.
        """
        self._check()
        actors = {self._name_of[actor]: actor for actor in self._calls}
        free = {
            name: shared * self._places[name]
            for name, actor in actors.items()
            if self._calls[actor] < limit * self._places[name]
        }
        name = self._share.take(free)
        if name is None:
            return None
        self._calls[actors[name]] += 1
        return actors[name]

    def give_back(self, actor: Any, error: RayError | None = None) -> None:
        """Count one call less; ``error`` is what the call raised."""
        self._share.give_back(self._name_of[actor])
        if actor in self._calls:
            self._calls[actor] -= 1
            if isinstance(error, ActorDiedError | ActorUnschedulableError):
                del self._calls[actor]

    def _check(self) -> None:
        if self.is_drained:
            raise FleetDrained(f"{', '.join(self._places)} get no more work; the job goes on when a machine does")
        if not self._calls:
            raise NoDevice(f"all of {', '.join(self._places)} died; the job goes on when a machine joins")

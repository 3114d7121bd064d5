"""Actors of one kind, and the number of calls that each of them works on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ray.exceptions import ActorDiedError, ActorUnschedulableError, RayError

from tuner.errors import FleetDrained, NoDevice
from tuner.ports import Meanwhile
from workers.ray.names import living
from workers.ray.sharing import Share

_LOOK_SECONDS = 0.05
"""Between two looks whether it is this process's turn at an actor."""


class ActorPool:
    """Lends the actor with the fewest calls. Actors that died and are not restarted leave the pool.

    ``places`` maps names of actors to the number of calls that each works on at a time. ``share`` is that of the loop
    which makes the calls, and counts them. An actor here is a Ray handle. Whoever takes one for a call gives it back
    when the call has ended. ``call_roll`` may change the pool; it is called while somebody waits for an actor.
    """

    def __init__(self, places: Mapping[str, int], share: Share, call_roll: Callable[[], None]) -> None:
        self._share = share
        self._call_roll = call_roll
        self._places: dict[str, int] = {}
        self._actors: dict[str, Any] = {}
        """Those that are lent, by name."""
        self._name_of: dict[Any, str] = {}
        self._dead: set[str] = set()
        self._drained = False
        self.add(places)

    def add(self, places: Mapping[str, int]) -> None:
        """Lend these actors, too. Names that no actor has any more, because its node has left, are passed over."""
        self._places |= places
        found = living(places.keys() - self._actors.keys() - self._dead)
        self._actors |= found
        self._name_of |= {actor: name for name, actor in found.items()}
        self._share.use(found)

    def __len__(self) -> int:
        return len(self._actors)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._actors.values())

    def name_of(self, actor: Any) -> str:
        """Return the name of an actor that is, or was, in the pool."""
        return self._name_of[actor]

    @property
    def places(self) -> int:
        """The number of calls that the actors work on at a time."""
        return sum(self._places[name] for name in self._actors)

    @property
    def names(self) -> list[str]:
        """The names of the actors in the pool."""
        return list(self._actors)

    @property
    def is_drained(self) -> bool:
        """Return whether no actor is left, and at least one was told to get no more calls."""
        return self._drained and not self._actors

    def drain(self, actor: Any) -> None:
        """Stop lending an actor. Its current calls continue."""
        self._drained |= self._actors.pop(self._name_of[actor], None) is not None

    def take(self) -> Any | None:
        """Return the actor with the fewest calls, and count one more; None if none may be called now.

        Raises NoDevice if no actor is left, or FleetDrained if the actors were drained.
        """
        self.check()
        name = self._share.add({name: self._places[name] for name in self._actors})
        return None if name is None else self._actors[name]

    def await_one(self, meanwhile: Meanwhile) -> Any:
        """Return what `take` returns, as soon as it is an actor, and call ``meanwhile``. Raises what `take` raises."""
        while (actor := self.take()) is None:
            self._share.awaits(self._actors)
            self._share.wait(_LOOK_SECONDS)
            self._call_roll()
            meanwhile()
        self._share.awaits(())
        return actor

    def take_if_below(self, limit: int, shared: int) -> Any | None:
        """Take an actor with fewer than ``limit`` calls a place of this loop, and ``shared`` of all, if it is its turn.

        Raises what `take` raises.
        """
        self.check()
        free = {
            name: shared * self._places[name]
            for name in self._actors
            if self._share.calls[name] < limit * self._places[name]
        }
        name = self._share.take(free)
        return None if name is None else self._actors[name]

    def give_back(self, actor: Any, error: RayError | None = None) -> None:
        """Count one call less; ``error`` is what the call raised."""
        name = self._name_of[actor]
        self._share.give_back(name)
        if isinstance(error, ActorDiedError | ActorUnschedulableError):
            self._dead.add(name)
            self._actors.pop(name, None)

    def check(self) -> None:
        """Raises what `take` raises."""
        if self.is_drained:
            raise FleetDrained(f"{', '.join(self._places)} get no new work; the job continues when a worker does")
        if not self._actors:
            raise NoDevice(f"all of {', '.join(self._places)} died; the job continues when a worker joins")

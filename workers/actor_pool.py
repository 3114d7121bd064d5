"""Actors of one kind, and the number of calls that each of them works on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ray.exceptions import ActorDiedError, ActorUnschedulableError, RayError

from tuner.errors import FleetDrained, NoDevice
from workers.names import living
from workers.sharing import Share


class ActorPool:
    """Lends the actor with the fewest calls; actors that died for good leave the pool.

    ``share`` is that of the loop which makes the calls. An actor here is a Ray handle. Whoever takes one for a call
    gives it back when the call has ended. Names that no actor has any more, because its node has left, are passed over.
    """

    def __init__(self, names: Sequence[str], share: Share) -> None:
        self._names = names
        self._share = share
        self._drained = False
        self._name_of = {actor: name for name, actor in living(names).items()}
        self._calls: dict[Any, int] = dict.fromkeys(self._name_of, 0)

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._calls)

    def name_of(self, actor: Any) -> str:
        """Return the name of an actor that is, or was, in the pool."""
        return self._name_of[actor]

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
        actor = min(self._calls, key=self._calls.__getitem__)
        self._share.add(self._name_of[actor])
        self._calls[actor] += 1
        return actor

    def take_if_below(self, limit: int, shared: int) -> Any | None:
        """Take an actor with fewer than ``limit`` calls of this loop, and ``shared`` of all, if it is its turn.

        Raises what `take` raises.
        """
        self._check()
        actors = {self._name_of[actor]: actor for actor, calls in self._calls.items() if calls < limit}
        name = self._share.take(actors, shared)
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
            raise FleetDrained(f"{', '.join(self._names)} get no more work; the job goes on when a machine does")
        if not self._calls:
            raise NoDevice(f"all of {', '.join(self._names)} died; the job goes on when a machine joins")

"""A controller's part of the devices of a fleet that several controllers share.

Each controller tells the others what its jobs could use, divides the devices as all of them do (`division`), and leases
its part. A device that is another's turn gets no new calls; when its last call has ended, it is returned. So there is
one controller at a time that calls a device, and nobody decides for the others: if two divide by what they knew at
different times, the one that leased a device first has it until they agree.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from db import Database
from db.device_leases import Change, Device, kind
from db.engine.clock import elapsed
from db.errors import Unavailable
from db.inputs import Demand
from service.api.liveness import LIVE_SECONDS
from service.controller.division import divide
from workers.ray.cluster import Offer
from workers.ray.sharing import Sharing, Wish

_TURN_SECONDS = 0.5
"""A device changes its controller within three turns. Not tuned."""
_FADE = 0.8
"""What is left, a turn later, of the devices that a job has used: a gap in its calls is no end."""
_FIRST = 4.0
"""As many devices a job is thought to use at first: a search has at least eight candidates on their way."""
_MORE = 2
"""A job asks for so many times as many devices as it uses. Its search feeds no number of devices at once."""

log = logging.getLogger("loopwright.device_turns")


class DeviceTurns:
    """Lets the loops of ``sharing`` call the devices that are the turn of the controller ``owner``, and no others.

    ``offers`` returns the devices that the controller can use.
    """

    def __init__(self, database: Database, owner: str, sharing: Sharing, offers: Callable[[], Sequence[Offer]]) -> None:
        self._db = database
        self._owner = owner
        self._sharing = sharing
        self._offers = offers
        self._has_lease = False
        self._mine: frozenset[str] = frozenset()
        """The devices that loops may call, by worker id."""
        self._used: dict[int, float] = defaultdict(lambda: _FIRST)
        """About how many devices each loop has used lately, by its number."""
        self._served: dict[int, float] = {}
        """When this controller last had a device for each loop, or else when the loop first wanted one."""
        self._let((), {}, 0.0)

    @contextlib.contextmanager
    def taken(self, stop: threading.Event) -> Iterator[None]:
        """Take turns in a thread until told to stop; return all devices at the end of the block, when loops are over.

        While the database is away the lease expires, and nothing is called.
        """
        thread = threading.Thread(target=self._run, args=(stop,), name="devices", daemon=True)
        thread.start()
        yield
        stop.set()
        thread.join()
        self._return_all()

    def _run(self, stop: threading.Event) -> None:
        while not stop.wait(_TURN_SECONDS):
            try:
                self.turn()
            except Unavailable as error:
                log.info("devices are not divided: %s", error)

    def _return_all(self) -> None:
        """Return all devices, or let the lease expire while the database is away."""
        self._let((), {}, 0.0)
        with contextlib.suppress(Unavailable):
            self._db.device_leases.give_up(self._owner)
        self._has_lease = False

    def turn(self) -> None:
        """Renew the lease, take what is this controller's turn, and return what is not."""
        wishes = self._sharing.wishes()
        self._forget(wishes)
        if not wishes:
            if self._has_lease:
                self._return_all()
            return
        began = elapsed()
        offers = {offer.id: offer for offer in self._offers()}
        demands = [self._demand(wish, offers, began) for wish in wishes]
        busy = frozenset[str]().union(*(wish.busy for wish in wishes))
        assigned: set[str] = set()

        def decide(devices: Sequence[Device], told: Mapping[str, Sequence[Demand]]) -> Change:
            divided = divide(devices, told)
            assigned.clear()  # of a transaction that was rolled back
            assigned.update(id for id, owner in divided.items() if owner == self._owner)
            had = {device.id for device in devices if device.leased_to == self._owner}
            idle = {id for id in had - assigned - self._mine if id not in offers or offers[id].measurer not in busy}
            return Change(wanted=assigned - had, returned=idle)

        lease_seconds = self._db.lease_seconds
        self._has_lease = True
        leased = self._db.device_leases.renew(self._owner, demands, lease_seconds, LIVE_SECONDS, decide)
        self._let(leased & assigned, offers, began + lease_seconds)

    def _let(self, devices: Sequence[str] | frozenset[str], offers: Mapping[str, Offer], until: float) -> None:
        """Let loops call these devices, with the builders of their hosts, until the lease ends."""
        self._mine = frozenset(devices)
        mine = [offers[id] for id in self._mine & offers.keys()]
        actors = {actor for offer in mine for actor in (offer.measurer, *offer.builders)}
        self._sharing.restrict(actors, lambda: elapsed() < until)

    def _demand(self, wish: Wish, offers: Mapping[str, Offer], now: float) -> Demand:
        serving = {id: offer for id, offer in offers.items() if offer.measurer in wish.actors}
        used = sum(offer.measurer in wish.busy for offer in serving.values())
        self._used[wish.number] = max(used, _FADE * self._used[wish.number])
        if not self._mine.isdisjoint(serving):
            self._served[wish.number] = now
        return Demand(
            priority=wish.priority,
            seconds=wish.seconds,
            devices=max(1, min(round(_MORE * self._used[wish.number]), wish.trials)),
            waited=now - self._served.setdefault(wish.number, now),
            kinds=tuple(sorted({kind(offer.device_class.id, offer.labels) for offer in serving.values()})),
        )

    def _forget(self, wishes: Sequence[Wish]) -> None:
        """Keep what is known of loops that still want devices."""
        numbers = {wish.number for wish in wishes}
        for known in (self._used, self._served):
            for number in known.keys() - numbers:
                del known[number]

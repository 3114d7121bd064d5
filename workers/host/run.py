"""The life of a worker host: it joins, stays, joins again after a loss, and leaves in order."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Callable

from workers.host import checks, head
from workers.host.errors import CannotJoin, HeadAway
from workers.host.leave import drain
from workers.host.node import Node
from workers.host.options import HostOptions, split

_LOOK_SECONDS = 1.0
_CONNECT_SECONDS = 2.0
_SILENT_SECONDS = 6.0
"""Without an answer of the head for so long, a person is told."""
_LOST_SECONDS = 30.0
"""After so long the node is taken down to join anew. Ray gives a node up after about as long. Not tuned."""
_STEADY_SECONDS = 60.0
"""A node that was joined for so long has not failed at joining: the time to reconnect begins anew. Not tuned."""
_FIRST_STEP_SECONDS = 1.0
_LONGEST_STEP_SECONDS = 15.0
"""Between two attempts to join again."""

Say = Callable[[str], None]


class Host:
    """One machine. ``say`` gets lines for people."""

    def __init__(self, options: HostOptions, say: Say) -> None:
        self._options = options
        self._say = say
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self._node: Node | None = None
        self._joined = 0.0
        self._until = 0.0
        """When an attempt to join again is the last."""

    def handle_signals(self) -> None:
        """Leave in order at the first SIGTERM or SIGINT, and at once at the second."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: (self._hurry if self._stop.is_set() else self._stop).set())

    def run(self) -> None:
        """Return when the host has left. Raises CannotJoin."""
        options = self._options
        checks.check_head(options)
        self._say(f"{options.address} answers; both have {checks.versions()}")
        offer = checks.offering(options)
        for line in checks.lines(options, offer):
            self._say(line)
        try:
            if not self._stop.is_set():
                self._join()
            while (reason := self._loss()) is not None:
                self._rejoin(reason)
            self._drain([device.name for device in offer.devices])
        finally:
            if self._node is not None:
                self._node.stop()
        self._say("left")

    def _join(self) -> None:
        """Raises CannotJoin."""
        self._node = Node(self._options)
        self._node.await_joined(self._stop)
        if not self._stop.is_set():
            self._joined = time.monotonic()
            self._say(f"joined {self._options.address} as {self._options.name}; Ctrl-C or SIGTERM has it leave")

    def _loss(self) -> str | None:
        """Wait until the node is lost, and return how; None once the host is to leave. Raises CannotJoin."""
        address = self._options.address
        answered = time.monotonic()
        reported = was_away = False
        while self._node is not None and not self._stop.wait(_LOOK_SECONDS):
            if not self._node.is_running:
                return f"this machine's node of Ray ended: {self._node.last_words()}"
            try:
                socket.create_connection(split(address), _CONNECT_SECONDS).close()
            except OSError as error:
                was_away = True
                silent = time.monotonic() - answered
                if silent > _LOST_SECONDS:
                    return f"{address} has not answered for {silent:.0f} s ({error})"
                if silent > _SILENT_SECONDS and not reported:
                    self._say(f"{address} does not answer ({error}); this host waits for it")
                    reported = True
                continue
            if reported:
                self._say(f"{address} answers again")
            answered, reported = time.monotonic(), False
            if was_away:
                # Ray's own processes take up to a minute to notice that the head is another one.
                with contextlib.suppress(HeadAway):  # it is starting: it is asked again
                    if self._options.name not in head.ask(self._options).hosts:
                        return f"{address} was away, and does not know this machine any more"
                    was_away = False
        return None

    def _rejoin(self, reason: str) -> None:
        """Raises CannotJoin if the head refuses, or does not come back in time."""
        assert self._node is not None
        self._node.stop()
        self._node = None
        now = time.monotonic()
        if self._until == 0.0 or now - self._joined > _STEADY_SECONDS:
            self._until = now + self._options.reconnect_seconds
        self._say(f"lost: {reason}; tries to join again for {max(0.0, self._until - now):.0f} s")
        step = _FIRST_STEP_SECONDS
        while not self._stop.wait(step):
            try:
                checks.check_head(self._options)
                self._join()
                return
            except CannotJoin as error:
                if time.monotonic() > self._until:
                    raise CannotJoin(
                        f"gave up after {self._options.reconnect_seconds:.0f} s without the fleet: {error}"
                    ) from None
                if not isinstance(error, HeadAway):
                    raise
            step = min(2 * step, _LONGEST_STEP_SECONDS)

    def _drain(self, devices: list[str]) -> None:
        seconds = self._options.drain_seconds
        if self._node is None or not self._node.is_running or seconds == 0:
            return
        self._say(f"leaving: what is being measured has {seconds:.0f} s to end; another signal ends it at once")
        options = self._options
        if drain(options.address, self._node.mark, devices, seconds, self._hurry):
            self._say("nothing is being measured any more")
        else:
            self._say("leaving before the work has ended; it is tried again elsewhere")

"""Detect that Ray has died or is stopped: calls of Ray may then hang, and Ray's own timeouts are a minute or more."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable

from workers.ray import private

Address = tuple[str, int]

_LOOK_SECONDS = 1.0
_ANSWER_SECONDS = 2.0
LOST_SECONDS = 6.0
"""Without a connection for so long, a process counts as lost. The kernel accepts connections however busy it is."""
SILENT_SECONDS = 15.0
"""Without an answer for so long, it does, too. A busy machine may delay an answer. Not tuned."""
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""How a connection of gRPC begins: HTTP/2's preface and a frame of settings (RFC 9113). A server answers with its own
settings at once, without a look at who asks."""


def watch_ray(lost: Callable[[str], object]) -> None:
    """Call ``lost`` with the reason, in a thread, once the raylet of this process or the cluster's GCS is lost."""
    watch("Ray's GCS", private.gcs_address(), lost)
    watch("the raylet of this machine", private.raylet_address(), lost)


def watch(name: str, address: Address, lost: Callable[[str], object]) -> None:
    """Call ``lost`` with the reason, in a thread, once the gRPC server at an address no longer answers."""

    def look() -> None:
        answered = time.monotonic()
        while True:
            try:
                _require_answer(address)
                answered = time.monotonic()
            except OSError as error:
                limit = SILENT_SECONDS if isinstance(error, TimeoutError) else LOST_SECONDS
                if time.monotonic() - answered > limit:
                    lost(f"{name} does not answer at {address[0]}:{address[1]} ({error})")
                    return
            time.sleep(_LOOK_SECONDS)

    threading.Thread(target=look, name=f"watch {name}", daemon=True).start()


def _require_answer(address: Address) -> None:
    """Raises OSError if nobody listens at the address, TimeoutError if who listens there is silent."""
    connection = socket.create_connection(address, _ANSWER_SECONDS)
    # To refuse the greeting, as with TLS, is an answer.
    with connection, contextlib.suppress(ConnectionResetError, BrokenPipeError):
        connection.sendall(_GREETING)
        connection.recv(1)

"""Leave in order: the host's actors report that they leave, and their current work finishes."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from workers.ray import actor_calls
from workers.ray.cluster import join
from workers.ray.names import PROCESS_LABEL, builder_name, living, measurer_name

_ANSWER_SECONDS = 5.0
_POLL_SECONDS = 1.0
_SETTLE_SECONDS = 10.0
"""Without work for so long, nobody sends any more: a controller's heartbeat tells of it within 5 s, and loops look each
2 s."""


def drain(address: str, mark: str, devices: Sequence[str], seconds: float, stop: threading.Event) -> bool:
    """Give the measurers of the node with this ``mark`` no more work, and wait until the node has none.

    Return False if it still has some after ``seconds``, if ``stop`` is set meanwhile, or if Ray does not answer.
    """
    until = time.monotonic() + seconds
    try:
        with _connected(address):
            node = next((node for node in ray.nodes() if node["Labels"].get(PROCESS_LABEL) == mark), None)
            if node is None:
                return True
            measurers = list(living(measurer_name(node["NodeID"], device) for device in devices).values())
            helpers = list(living([builder_name(node["NodeID"])]).values())
            return not measurers or _settled(measurers, helpers, until, stop)
    except (RayError, ConnectionError, TimeoutError):
        return False


def _settled(measurers: Sequence[Any], builders: Sequence[Any], until: float, stop: threading.Event) -> bool:
    idle_since = None
    while True:
        now = time.monotonic()
        if _is_busy(measurers, builders):
            idle_since = None
        else:
            idle_since = idle_since or now
            if now - idle_since >= _SETTLE_SECONDS:
                return True
        if now >= until or stop.wait(min(_POLL_SECONDS, until - now)):
            return False


def _is_busy(measurers: Sequence[Any], builders: Sequence[Any]) -> bool:
    for measurer in measurers:
        actor_calls.leave(measurer)  # each time: an actor that was restarted has forgotten it
    slots = [actor_calls.MEASURER_STATUS(measurer) for measurer in measurers]
    builds = [actor_calls.BUILDER_STATUS(builder) for builder in builders]
    references = [call.reference for call in slots] + [call.reference for call in builds]
    ready, _ = ray.wait(references, num_returns=len(references), timeout=_ANSWER_SECONDS)
    if len(ready) < len(references):
        return True
    return any(call.result().since is not None for call in slots) or any(call.result().busy for call in builds)


@contextlib.contextmanager
def _connected(address: str) -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    join(address)
    for number, handler in handlers.items():
        signal.signal(number, handler)  # ray.init sets handlers of its own
    try:
        yield
    finally:
        ray.shutdown()

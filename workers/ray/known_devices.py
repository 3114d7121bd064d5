"""The devices of each node, as they were detected when it joined, kept at the head of the cluster while the node lives.

A controller that starts anew knows them at once: to detect them takes seconds, and a timing that may come out otherwise
the next time.
"""

from __future__ import annotations

import json

from tuner.codec import decode, encode
from workers.messages import DetectedDevice
from workers.ray import private
from workers.walls.levels import Policy

_NAMESPACE = b"loopwright devices"


def store(node_id: str, walls: Policy, devices: list[DetectedDevice]) -> None:
    """Keep what was detected on a node that can put up such walls."""
    value = json.dumps(encode(devices)).encode()
    private.gcs().internal_kv_put(_key(node_id, walls), value, True, namespace=_NAMESPACE)


def of_node(node_id: str, walls: Policy) -> list[DetectedDevice] | None:
    """Return what is kept of a node, or None."""
    value = private.gcs().internal_kv_get(_key(node_id, walls), namespace=_NAMESPACE)
    return None if value is None else decode(list[DetectedDevice], json.loads(value))


def forget(node_id: str) -> None:
    """Keep nothing of a node that has left."""
    private.gcs().internal_kv_del(node_id.encode(), True, namespace=_NAMESPACE)


def _key(node_id: str, walls: Policy) -> bytes:
    return f"{node_id} {walls}".encode()

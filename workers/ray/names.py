"""The names of actors on the cluster, by which processes find them, and the properties of a node."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import ray

NAMESPACE = "loopwright"
HOST_LABEL = "loopwright/host"
"""Label of a Ray node: the name of its host, if that is not what the machine calls itself."""
PROCESS_LABEL = "loopwright/process"
"""Label of a Ray node that `workers.host` started: a random name by which it finds its own node."""
_LETTERS = 12
"""Of a node's id, in the names of its actors."""


def builder_name(node_id: str) -> str:
    return f"builder-{node_id[:_LETTERS]}"


def measurer_name(node_id: str, device: str) -> str:
    return f"measurer-{node_id[:_LETTERS]}-{device}"


def node_of(actor: str) -> str:
    """Return the common prefix of the names of a node's actors, from one of the names."""
    return actor.partition("-")[2].partition("-")[0]


def host_name(node: Mapping[str, Any]) -> str:
    """Return the name of a node's host, from what `ray.nodes` says."""
    return str(node["Labels"].get(HOST_LABEL) or node["NodeManagerHostname"])


def own_labels(node: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels that the node's operator gave it, from what `ray.nodes` says: those without a prefix."""
    return {key: value for key, value in sorted(node["Labels"].items()) if "/" not in key}


def living(names: Iterable[str]) -> dict[str, Any]:
    """Return the existing actors of these names. An actor whose node has left has no name."""
    found = {}
    for name in names:
        with contextlib.suppress(ValueError):
            found[name] = ray.get_actor(name, NAMESPACE)
    return found

"""The names by which processes find each other's actors on the cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import ray

NAMESPACE = "loopwright"


def living(names: Iterable[str]) -> dict[str, Any]:
    """Return the actors that there are of these names: one whose node has left has no name any more."""
    found = {}
    for name in names:
        with contextlib.suppress(ValueError):
            found[name] = ray.get_actor(name, NAMESPACE)
    return found

"""What the tests of warm children ask of them."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

from workers.child.warm_child import WarmChild
from workers.walls.levels import Level

FUNCTIONS = "tests.integration.workers.functions"
SOON = 0.4
LEVEL = Level.LANDLOCK


def name(function: str) -> str:
    return f"{FUNCTIONS}:{function}"


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether it comes true; the limit is generous because machines are busy."""
    until = time.monotonic() + 20
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def works(child: WarmChild) -> bool:
    return bool(child.call(name("values"), {"items": ["fine"]}, 30) == "fine")

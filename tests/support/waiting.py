"""Waiting for what takes as long as the machine is slow."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def wait_for(what: str, look: Callable[[], Value | None], seconds: float = 120.0) -> Value:
    """Return the first true value of ``look``. Fails after ``seconds``, which no passing test comes near."""
    until = time.monotonic() + seconds
    while not (value := look()):
        assert time.monotonic() < until, f"waited {seconds:g} s in vain for {what}"
        time.sleep(0.1)
    return value

"""Waiting for what takes as long as the machine is slow."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def wait_for(
    what: str,
    look: Callable[[], Value | None],
    seconds: float = 120.0,
    *,
    progress: Callable[[], object] = lambda: None,
) -> Value:
    """Return the first true value of ``look``.

    Fails after ``seconds`` in which ``progress``, called after each look, does not change. No passing test comes near.
    """
    stage: object = None
    until = time.monotonic() + seconds
    while not (value := look()):
        if stage != (stage := progress()):
            until = time.monotonic() + seconds
        assert time.monotonic() < until, f"waited {seconds:g} s in vain for {what}; what is known: {stage}"
        time.sleep(0.1)
    return value

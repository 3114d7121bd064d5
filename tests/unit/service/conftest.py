"""What the service's own commands leave in a process that goes on."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Take back what `service.logs.set_up` does to a process, whose log would go to the stderr of a test that is over.

    A role does it for the life of its process; a test that calls ``service.__main__.main`` does it to all later tests.
    """
    root, ours = logging.getLogger(), logging.getLogger("loopwright")
    handlers, levels, excepthook = root.handlers[:], (root.level, ours.level), sys.excepthook
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])
    sys.excepthook = excepthook

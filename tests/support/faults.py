"""What may go wrong in a child: generators that a sandbox runs in place of its own functions."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loopwright.codegen.errors import InvalidModule

SECRET = "/srv/loopwright/src/relax/op.cc:42"
"""Part of a native stack, which must not leave the service."""


def raise_value_error(**_: Any) -> Iterator[None]:
    raise ValueError(f"Traceback (most recent call last):\n  File {SECRET}, in apply\nthe loop is not affine")
    yield


def raise_import_error(**_: Any) -> Iterator[None]:
    raise ImportError(f"no module named tvm ({SECRET})")
    yield


def refuse(**_: Any) -> Iterator[None]:
    raise InvalidModule('symbolic shape; say shapes={"n": 128}')
    yield


def run_out_of_memory(**_: Any) -> Iterator[None]:
    raise MemoryError
    yield


def crash(**_: Any) -> Iterator[None]:
    os.write(2, SECRET.encode())
    os.kill(os.getpid(), signal.SIGSEGV)
    yield


def hang(**_: Any) -> Iterator[None]:
    time.sleep(60)
    yield


def hang_if_told(data: str, **_: Any) -> Iterator[None]:
    """Write the process's id to the file that ``data`` names, if it names one, and hang; else refuse at once."""
    if data.startswith("/"):
        Path(data).write_text(str(os.getpid()))
        time.sleep(600)
    raise InvalidModule("nothing to wait for")
    yield


def kill_the_warm_child(**_: Any) -> Iterator[None]:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
    yield


def count(modules: list[str]) -> Iterator[list[str]]:
    """No fault: yield each of the modules, and how many came with it."""
    yield [f"{module} of {len(modules)}" for module in modules]

"""The service of Loopwright as an installed package.

Its rooms (``service``, ``db``, ``tuner``, ``workers``) lie in a folder that only processes of the service have on their
path, with all that these start: programs beside it may have packages of the same names.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

ROOMS = Path(__file__).with_name("rooms")


def serve() -> None:
    """Run ``service``: the whole service, or the role that the arguments name."""
    _run("service")


def work() -> None:
    """Run ``workers.host``, which joins this machine to a fleet."""
    _run("workers.host")


def _run(module: str) -> None:
    above = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOMS) if not above else f"{ROOMS}{os.pathsep}{above}"
    sys.path.insert(0, str(ROOMS))
    runpy.run_module(module, run_name="__main__", alter_sys=True)

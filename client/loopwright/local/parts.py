"""Where the parts of the service are that a client can start: in the package beside it, or in its own checkout."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Literal

Part = Literal["service", "worker"]

_PACKAGED = {"service": "loopwright_service", "worker": "loopwright_service.worker"}
_CHECKED_OUT = {"service": "service", "worker": "workers.host"}


def command(part: Part) -> list[str] | None:
    """Return the command that runs a part of the service; None if this installation is the client alone."""
    if importlib.util.find_spec("loopwright_service") is not None:
        return [sys.executable, "-m", _PACKAGED[part]]
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "service" / "__main__.py").is_file():
        return [sys.executable, "-m", _CHECKED_OUT[part]]
    return None

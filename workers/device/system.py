"""The system on which timings depend besides the machine and TVM: the kernel, and a GPU's driver."""

from __future__ import annotations

import platform
import re
from pathlib import Path

_NVIDIA = Path("/proc/driver/nvidia/version")
_VERSION = re.compile(r"\b\d{3,}\.\d+(?:\.\d+)?\b")


def system(device_kind: str, driver: Path = _NVIDIA) -> str:
    """Return the kernel's name and release, for a GPU with the driver's version, as far as they are known."""
    kernel = f"{platform.system()} {platform.release()}"
    if device_kind != "cuda" or not driver.is_file():
        return kernel
    found = _VERSION.search(driver.read_text())
    return f"{kernel}, NVIDIA {found[0]}" if found else kernel

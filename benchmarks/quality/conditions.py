"""The machine and the code of a result."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.search.run_record import this_code

_FEATURES = (
    "avx2",
    "fma",
    "avx512f",
    "avx512bw",
    "avx512_vnni",
    "avx_vnni",
    "avx512_bf16",
    "amx_tile",
    "amx_bf16",
    "amx_int8",
)


def conditions(threads: int) -> dict[str, Any]:
    """Return CPU model and features, threads, load average, date and the digest of Loopwright's code."""
    model, flags = cpu(Path("/proc/cpuinfo").read_text())
    return {
        "cpu": model,
        "features": [feature for feature in _FEATURES if feature in flags],
        "threads": threads,
        "load": os.getloadavg()[0],
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "code": this_code(),
    }


def cpu(information: str) -> tuple[str, set[str]]:
    """Return the model and the flags of the first processor of ``/proc/cpuinfo``."""
    fields = dict(line.split(":", 1) for line in information.partition("\n\n")[0].splitlines() if ":" in line)
    named = {name.strip(): value.strip() for name, value in fields.items()}
    return named["model name"], set(named["flags"].split())

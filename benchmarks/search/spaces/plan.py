"""What the short comparison of design spaces runs, and where its raw results go."""

from __future__ import annotations

from pathlib import Path

from benchmarks.results import RAW

WORKLOADS = ("C2D-1", "SFM-1", "MM-512")
SEED = 0
ARMS = ("A", "T", "C")
"""Of `benchmarks.search.arms`."""
FOLDER = RAW / "spaces"


def race_of(workload: str) -> Path:
    return FOLDER / "races" / f"{workload}.json"

"""A digest of the code that a benchmark measured."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@cache
def this_code() -> str:
    """Return a digest of the code of the search and the workers."""
    packages = ("tuner", "workers", "client/loopwright/codegen")
    files = sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:8]

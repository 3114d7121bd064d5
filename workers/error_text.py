"""Error texts for users: the message without native stacks, paths and addresses of this machine."""

from __future__ import annotations

import re

_TRACEBACK_LINES = ("Traceback", "  File", "    ", "  [bt]", "Stack trace")
_ADDRESSES = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_CHARACTERS = 500


def for_users(text: str) -> str:
    """Return the end of a message in one line, without tracebacks and addresses."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(_TRACEBACK_LINES)]
    return _ADDRESSES.sub("0x…", " ".join(" ".join(lines).split()))[-_CHARACTERS:]


def raised(kind: str, message: str) -> str:
    """Return what an exception of this class name says, as `for_users`."""
    return f"{kind}: {for_users(message)}"


def first_line(text: str) -> str:
    """Return the first line of what a dead process wrote, as `for_users`: what follows it is a native stack mostly."""
    return for_users(next((line for line in text.splitlines() if line.strip()), ""))

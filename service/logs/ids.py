"""The ids of the current work, which each log line contains that is written during this work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_known: ContextVar[Mapping[str, str] | None] = ContextVar("known", default=None)


def known() -> Mapping[str, str]:
    """Return the ids that are known here by name: ``request``, ``job``, ``trial`` or ``worker``."""
    return _known.get() or {}


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Add these ids to the log lines of this thread or task, besides the ids that are already set."""
    token = _known.set({**known(), **ids})
    try:
        yield
    finally:
        _known.reset(token)


def about_request(request_id: str) -> None:
    """As `about`, to the end of the task, in which the server logs what the application raised."""
    _known.set({**known(), "request": request_id})

"""What the tuning database refuses. None of these is worth a retry with the same arguments."""

from __future__ import annotations


class DatabaseError(Exception):
    """Base of the errors that repositories raise on purpose."""


class NotFound(DatabaseError):
    """There is no such thing."""

    def __init__(self, kind: str, id: str) -> None:
        super().__init__(f"no {kind} {id!r}")
        self.kind = kind
        self.id = id


class IdempotencyConflict(DatabaseError):
    """The idempotency key was used before, with another request."""

    def __init__(self, key: str) -> None:
        super().__init__(f"idempotency key {key!r} was already used for a different request")
        self.key = key


class LeaseLost(DatabaseError):
    """Somebody else owns the job or tunes the task now: the caller must stop working on it."""


class InvalidTransition(DatabaseError):
    """The state asked for cannot follow the present one."""


class InvalidPage(DatabaseError):
    """A page size out of bounds, or a page token that this list did not give."""


class InvalidArchive(DatabaseError):
    """An archive of records that is not one, or lacks a part."""

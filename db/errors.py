"""Errors of the tuning database. None is worth a retry with the same arguments.

A lost lease is `tuner.errors.LeaseLost`, which the tuning loop catches whatever ledger it writes to.
"""

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


class NameTaken(DatabaseError):
    """Another user has this name."""


class QuotaExceeded(DatabaseError):
    """What was asked for is over a limit of its user; the message says which, and what is left of it."""

    def __init__(self, message: str, retry_after_s: int | None) -> None:
        """``retry_after_s``: when the day ends whose limit this is; None if something else has to end first."""
        super().__init__(message)
        self.retry_after_s = retry_after_s


class InvalidTransition(DatabaseError):
    """The state asked for cannot follow the present one."""


class InvalidPage(DatabaseError):
    """A page size out of bounds, or a page token that this list did not give."""


class InvalidArchive(DatabaseError):
    """An archive of records that is not one, or lacks a part."""

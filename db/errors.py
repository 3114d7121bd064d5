"""Errors of the tuning database. Only an `Unavailable` is worth a retry with the same arguments.

A lost lease is `tuner.errors.LeaseLost`, which the tuning loop catches whatever ledger it writes to.
"""

from __future__ import annotations


class DatabaseError(Exception):
    """Base of the errors that repositories raise on purpose."""


class NotFound(DatabaseError):
    """There is no such object."""

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
    """The request exceeds a limit of its user; the message names the limit and its use."""

    def __init__(self, message: str, retry_after_s: int | None) -> None:
        """``retry_after_s``: when the day ends whose limit this is; None if something else has to end first."""
        super().__init__(message)
        self.retry_after_s = retry_after_s


class InvalidTransition(DatabaseError):
    """The requested state cannot follow the present state."""


class InvalidPage(DatabaseError):
    """The page size is out of bounds, or the page token belongs to another list."""


class InvalidArchive(DatabaseError):
    """A file that is not an archive of records, or an archive that lacks a part."""


class Unavailable(DatabaseError):
    """The database cannot work now, but may be able to later. `db.engine.outages` raises it.

    Whether a transaction was stored that was being committed is not known.
    """


class DatabaseAway(Unavailable):
    """The database does not answer, or is locked for longer than a writer waits."""


class TransactionConflict(Unavailable):
    """The database rolled back the transaction in favour of another: a deadlock, or a serialization failure.

    Nothing of the transaction was stored. `db.engine.conflicts` retries it at once; this is raised if that fails, too.
    """


class DiskFull(Unavailable):
    """The disk of the database is full. Nothing of the transaction was stored."""


class AccessRefused(Unavailable):
    """The database refuses access: a wrong password, an unknown database, or a file without write permission."""


class DatabaseDamaged(DatabaseError):
    """The file is no SQLite database, or a damaged one."""


class SchemaTooNew(DatabaseError):
    """A newer version of Loopwright has changed the tables."""

    def __init__(self, revision: str) -> None:
        super().__init__(f"the tables are at revision {revision!r}, which this version of Loopwright does not know")
        self.revision = revision

    def __reduce__(self) -> tuple[type[SchemaTooNew], tuple[str]]:
        return SchemaTooNew, (self.revision,)

"""The tuning database, on SQLite or PostgreSQL behind one URL.

The storage contract
--------------------
**Transactions.** Every public method of a repository is one short transaction of its own and returns frozen values,
never a live row: no session is open across a compile or a measurement. A method either happened as a whole or not at
all. A read sees one snapshot. Threads may share a `Database`; each process opens its own.

**Isolation.** On SQLite (WAL) a writing transaction begins with ``BEGIN IMMEDIATE``: there is one writer, the others
wait in line, readers never wait. On PostgreSQL writers run at READ COMMITTED and lock the row of the job that they
change first, always before rows of its tasks and trials, so that they cannot deadlock and a job's events become visible
in the order of their ids. Claims skip locked rows (``SKIP LOCKED``).

**Leases.** ``jobs.claim`` gives a job to one owner for some seconds, under a fresh token. The token, not the owner's
name, is the right to write: ``renew``, ``release`` and ``finish`` answer False, and methods of tasks, trials and
certificates raise `tuner.errors.LeaseLost`, once the job has another token. The owner must then stop. An expired
lease is taken back only by a new claim: until then a late owner may still renew. Times, those of
leases among them, come from the clock of a PostgreSQL server, whatever the machines of the fleet think; with an SQLite
file, whose users are on one machine, from that machine's.

**Who tunes.** At most one task per (workload, device class, space) is running; the database itself enforces it.
``tasks.try_start`` returns False if another live job has that right: the caller then joins that search. A job that
finished, or whose lease expired, has no such right: its running task goes back to queued when another job starts.

**Who owns a trial.** A trial belongs to the lease token it was proposed (or adopted) under, until it is finished.
``trials.finish`` with another token, or for a finished trial, changes nothing and answers False: a late result is
discarded, and a finished trial never changes. A task has each candidate once, however often it is proposed. After a
new claim ``trials.adopt`` moves unfinished trials to the new token.

**Events.** Every change of state of a job, a task or a trial writes its event in the same transaction.

**Webhooks.** A change that webhooks are told of queues their deliveries in the same transaction. ``webhooks.claim_due``
holds a delivery for some seconds; without an outcome it is due again, so that each is sent at least once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from db.errors import DatabaseError, IdempotencyConflict, InvalidPage, InvalidTransition, NotFound

if TYPE_CHECKING:
    from db.database import Database

__all__ = [
    "Database",
    "DatabaseError",
    "IdempotencyConflict",
    "InvalidPage",
    "InvalidTransition",
    "NotFound",
]


def __getattr__(name: str) -> Any:
    """Import `Database` when it is first used: children that read files do without SQLAlchemy, 0.5 s and 40 MB."""
    if name != "Database":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from db.database import Database

    return Database

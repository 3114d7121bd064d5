"""``python -m service prune``, ``backup``, ``rotate-key`` and ``revoke-key``: upkeep of the database.

The service may run meanwhile.
"""

from __future__ import annotations

import sys
from pathlib import Path

from db import Database
from db.errors import NotFound
from db.upkeep.archive import Archive
from db.upkeep.backup import CannotBackUp, shrink
from db.upkeep.backup import back_up as copy_database
from service.settings import Settings


def prune(settings: Settings, *, days: float, dry_run: bool, shrinks: bool, archive: Path | None = None) -> None:
    """Delete trials that nothing needs, of jobs that ended more than ``days`` ago, one job after another.

    They are written to the folder ``archive`` before, if there is one.
    """
    if days < 0:
        sys.exit(f"loopwright: --days is {days:g}; it counts back from now")
    database = Database(settings.database)
    try:
        jobs, samples = database.retention.old_jobs(days), database.retention.samples()
        kept = None if archive is None else Archive(archive)
        pruned = sum(database.retention.prune(job_id, samples, dry_run=dry_run, archive=kept) for job_id in jobs)
    finally:
        database.close()
    print(f"{pruned:,} trials of {len(jobs):,} jobs {'would be' if dry_run else 'were'} pruned.")
    if shrinks and not dry_run:
        try:
            shrink(settings.database)
        except CannotBackUp as error:
            sys.exit(f"loopwright: {error}")


def rotate_key(settings: Settings) -> None:
    """Sign certificates with a new key from now on. The key before loses its private part and stays published."""
    database = Database(settings.database)
    try:
        key = database.signing_keys.rotate()
    finally:
        database.close()
    print(f"Certificates are signed with the key {key.id} from now on.")


def revoke_key(settings: Settings, key_id: str) -> None:
    """Let nothing count any more that a key has signed, and sign what the database has with the current key."""
    database = Database(settings.database)
    try:
        done = database.signing_keys.revoke(key_id)
    except NotFound as error:
        sys.exit(f"loopwright: {error}; see 'loopwright key list'")
    finally:
        database.close()
    print(f"The key {done.key.id} is revoked. Documents that the key {done.signer} signed again: {done.signed:,}.")
    if done.left:
        print(f"Documents that had been changed, and will be refused: {done.left:,}. Tune their functions again.")


def back_up(settings: Settings, target: Path) -> None:
    """Copy a SQLite database to a new file."""
    try:
        copy_database(settings.database, target, _show)
    except CannotBackUp as error:
        sys.exit(f"loopwright: {error}")
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(f"The database was copied to {target} ({target.stat().st_size / 1e6:,.1f} MB).")


def _show(share: float) -> None:
    if sys.stderr.isatty():
        print(f"\r{share:.0%} copied", end="", file=sys.stderr, flush=True)

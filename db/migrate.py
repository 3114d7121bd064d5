"""Migrations: bring a database to the revision that this code needs, or back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, event, text

from db.engine.connections import create_engine
from db.engine.outages import translated
from db.errors import SchemaTooNew
from db.models import Base
from db.upkeep import grants

Result = TypeVar("Result")

_LOCK = 0x100
"""Number of the PostgreSQL advisory lock under which migrations run, one process at a time."""


def upgrade(url: str, revision: str = "head") -> None:
    """Make or renew the tables at `url`; does nothing if they are at `revision`. Safe to run in many processes.

    Raises `db.errors.SchemaTooNew` and what `db.engine.outages` raises.
    """
    _in_transaction(url, lambda connection: _migrate(connection, command.upgrade, revision))


def grant(url: str, role: str) -> None:
    """Let ``role`` use the tables at `url`, which must be at the newest revision. Raises
    `db.upkeep.grants.CannotGrant`."""
    _in_transaction(url, lambda connection: grants.grant(connection, role))


def downgrade(url: str, revision: str) -> None:
    """Go back to `revision`; ``base`` drops all tables."""
    _in_transaction(url, lambda connection: _migrate(connection, command.downgrade, revision))


def draft(url: str, message: str) -> None:
    """Write a new revision file from what the models have and the database at `url` lacks, for a person to review."""
    _in_transaction(url, lambda connection: command.revision(_config(connection), message, autogenerate=True))


def current(url: str) -> str | None:
    """Return the revision of the database at `url`; None before the first one."""
    return _in_transaction(url, _revision)


def head() -> str | None:
    """Return the revision that this code needs."""
    return ScriptDirectory.from_config(_config(None)).get_current_head()


def is_behind(url: str) -> bool:
    """Return whether the tables at `url` are older than this code needs.

    Tables at a revision that this code does not know are newer: a later release has renewed them.
    """
    revision = current(url)
    known = {script.revision for script in ScriptDirectory.from_config(_config(None)).walk_revisions()}
    return revision is None or (revision != head() and revision in known)


def differences(url: str) -> list[Any]:
    """Return what the models say and the database at `url` lacks, or the reverse, in Alembic's words."""
    options = {"compare_type": True}
    return _in_transaction(
        url, lambda connection: compare_metadata(MigrationContext.configure(connection, opts=options), Base.metadata)
    )


def check(url: str) -> None:
    """Raises `db.errors.SchemaTooNew` if the tables at `url` are of a version after this one."""
    _in_transaction(url, _check)


def _check(connection: Connection) -> str | None:
    """Return the revision. Raises SchemaTooNew."""
    revision = _revision(connection)
    known = {script.revision for script in ScriptDirectory.from_config(_config(None)).walk_revisions()}
    if revision is not None and revision not in known:
        raise SchemaTooNew(revision)
    return revision


def _migrate(connection: Connection, move: Callable[[Config, str], None], revision: str) -> None:
    """Move to a revision. On SQLite, where foreign keys are off meanwhile, check them if anything changed."""
    before = _check(connection)
    move(_config(connection), revision)
    if connection.dialect.name != "sqlite" or _revision(connection) == before:
        return
    if broken := connection.execute(text("PRAGMA foreign_key_check")).all():
        raise RuntimeError(f"the migration leaves rows whose foreign keys lead nowhere: {broken[:10]}")


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _in_transaction(url: str, work: Callable[[Connection], Result]) -> Result:
    """Apply a revision as a whole or not at all, also on SQLite."""
    engine = create_engine(url, limited=False)
    is_sqlite = engine.dialect.name == "sqlite"
    if is_sqlite:
        # A table that is copied to change it is dropped once, which would violate the keys that refer to it.
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys=OFF"))
    try:
        with translated(), engine.begin() as connection:
            if not is_sqlite:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            return work(connection)
    finally:
        engine.dispose()


def _config(connection: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config

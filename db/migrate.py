"""Migrations: bring a database to the revision that this code needs, or back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

from db import revisions
from db.models import Base
from db.revisions import in_transaction
from db.upkeep import grants


def upgrade(url: str, revision: str = "head") -> None:
    """Make or renew the tables at `url`; does nothing if they are at `revision`. Safe to run in many processes.

    Raises `db.errors.SchemaTooNew` and what `db.engine.outages` raises.
    """
    in_transaction(url, lambda connection: _migrate(connection, command.upgrade, revision))


def grant(url: str, role: str) -> None:
    """Let ``role`` use the tables at `url`, which must be at the newest revision. Raises
    `db.upkeep.grants.CannotGrant`."""
    in_transaction(url, lambda connection: grants.grant(connection, role))


def downgrade(url: str, revision: str) -> None:
    """Go back to `revision`; ``base`` drops all tables."""
    in_transaction(url, lambda connection: _migrate(connection, command.downgrade, revision))


def draft(url: str, message: str) -> None:
    """Write a new revision file from what the models have and the database at `url` lacks, for a person to review."""
    in_transaction(url, lambda connection: command.revision(_config(connection), message, autogenerate=True))


def differences(url: str) -> list[Any]:
    """Return what the models say and the database at `url` lacks, or the reverse, in Alembic's words."""
    options = {"compare_type": True}
    return in_transaction(
        url, lambda connection: compare_metadata(MigrationContext.configure(connection, opts=options), Base.metadata)
    )


def _migrate(connection: Connection, move: Callable[[Config, str], None], revision: str) -> None:
    """Move to a revision. On SQLite, where foreign keys are off meanwhile, check them if anything changed."""
    before = revisions.stored(connection)
    revisions.require_known(before)
    move(_config(connection), revision)
    if connection.dialect.name != "sqlite" or revisions.stored(connection) == before:
        return
    if broken := connection.execute(text("PRAGMA foreign_key_check")).all():
        raise RuntimeError(f"the migration leaves rows whose foreign keys lead nowhere: {broken[:10]}")


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy
from alembic import command
from alembic.config import Config

from db import Database, migrate, revisions
from db.engine.connections import create_engine
from tuner.types import DeviceClass

DEVICE_CLASS = DeviceClass('{"kind":"llvm"}', "m", (), 1, 1, "r")


def tables(url: str) -> set[str]:
    engine = create_engine(url)
    try:
        return set(sqlalchemy.inspect(engine).get_table_names())
    finally:
        engine.dispose()


def test_up_down_and_up_again(empty_url: str) -> None:
    assert revisions.current(empty_url) is None
    migrate.upgrade(empty_url)
    assert revisions.current(empty_url) == revisions.newest() == revisions.known()[-1]
    made = tables(empty_url)
    migrate.downgrade(empty_url, "base")
    assert revisions.current(empty_url) is None
    assert tables(empty_url) == {"alembic_version"}
    migrate.upgrade(empty_url)
    assert tables(empty_url) == made


def test_models_and_migrations_say_the_same(empty_url: str) -> None:
    assert migrate.differences(empty_url) != []
    migrate.upgrade(empty_url)
    assert migrate.differences(empty_url) == []


def test_upgrading_again_keeps_what_is_there(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    db.devices.put(DEVICE_CLASS)
    db.close()
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    assert db.devices.all() == [DEVICE_CLASS]
    db.close()


def test_many_may_upgrade_at_once(empty_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: migrate.upgrade(empty_url), range(4)))
    assert migrate.differences(empty_url) == []


def test_a_migration_that_breaks_a_foreign_key_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Foreign keys are off while SQLite migrates."""
    url = f"sqlite:///{tmp_path}/loopwright.db"

    def upgrade_and_insert_an_orphan(config: Config, revision: str) -> None:
        upgrade(config, revision)
        orphan = "INSERT INTO comparisons VALUES ('no such job', 'owner', '{}', '2030-01-01 00:00:00')"
        config.attributes["connection"].execute(sqlalchemy.text(orphan))

    upgrade = command.upgrade
    monkeypatch.setattr(command, "upgrade", upgrade_and_insert_an_orphan)
    with pytest.raises(RuntimeError, match="foreign keys"):
        migrate.upgrade(url)
    assert revisions.current(url) is None
    assert "comparisons" not in tables(url)

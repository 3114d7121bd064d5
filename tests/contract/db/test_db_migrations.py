from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import sqlalchemy

from db import Database, migrate
from db.engine import create_engine
from tuner.types import DeviceClass


def tables(url):
    engine = create_engine(url)
    try:
        return set(sqlalchemy.inspect(engine).get_table_names())
    finally:
        engine.dispose()


def test_up_down_and_up_again(empty_url):
    assert migrate.current(empty_url) is None
    migrate.upgrade(empty_url)
    assert migrate.current(empty_url) == migrate.head()
    made = tables(empty_url)
    migrate.downgrade(empty_url, "base")
    assert migrate.current(empty_url) is None
    assert tables(empty_url) == {"alembic_version"}
    migrate.upgrade(empty_url)
    assert tables(empty_url) == made


def test_models_and_migrations_say_the_same(empty_url):
    assert migrate.differences(empty_url) != []
    migrate.upgrade(empty_url)
    assert migrate.differences(empty_url) == []


def test_upgrading_again_keeps_what_is_there(empty_url):
    migrate.upgrade(empty_url)
    device_class = DeviceClass('{"kind":"llvm"}', "m", (), 1, 1, "r")
    db = Database(empty_url)
    db.devices.put(device_class)
    db.close()
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    assert db.devices.all() == [device_class]
    db.close()


def test_many_may_upgrade_at_once(empty_url):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: migrate.upgrade(empty_url), range(4)))
    assert migrate.differences(empty_url) == []

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Dialect, text
from sqlalchemy.dialects import postgresql, sqlite

from db.clean_text import clean_text
from db.devices import target_id
from db.engine.changes import Topic
from db.engine.columns import UtcDateTime
from db.engine.connections import Sessions, create_engine, normalise_url
from db.inputs import space_hash
from tuner.types import BUILTIN_SPACE


@pytest.mark.parametrize(
    ("url", "driver"),
    [
        ("postgresql://u:p@host/db", "postgresql+psycopg"),
        ("postgres://u:p@host/db?sslmode=require", "postgresql+psycopg"),
        ("postgresql+psycopg://host/db", "postgresql+psycopg"),
        ("sqlite:////data/loopwright.db", "sqlite"),
    ],
)
def test_urls_mean_one_driver(url: str, driver: str) -> None:
    normalised = normalise_url(url)
    assert normalised.drivername == driver
    assert normalised.render_as_string(hide_password=False).partition("://")[2] == url.partition("://")[2]


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://host/db", "postgresql+psycopg2://host/db"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="SQLite"):
        normalise_url(url)


def test_sqlite_is_set_up_for_many_readers_and_one_writer(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/a.db")
    with engine.connect() as connection:
        pragmas = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "foreign_keys", "busy_timeout")
        }
    engine.dispose()
    assert pragmas == {"journal_mode": "wal", "foreign_keys": 1, "busy_timeout": 60_000}


def test_many_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    def open_and_write(number: int) -> None:
        engine = create_engine(f"sqlite:///{tmp_path}/{number // 12}.db")
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE IF NOT EXISTS t (x INTEGER)"))
        engine.dispose()

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(open_and_write, range(12 * 20)))


def test_a_reader_sees_one_snapshot_and_does_not_wait_for_the_writer(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/a.db")
    sessions = Sessions(engine)
    with sessions.write(Topic.NONE) as session:
        session.execute(text("CREATE TABLE t (x INTEGER)"))
    with sessions.read() as reader:
        assert reader.execute(text("SELECT count(*) FROM t")).scalar() == 0
        with sessions.write(Topic.NONE) as writer:
            writer.execute(text("INSERT INTO t VALUES (1)"))
            with sessions.read() as other:
                assert other.execute(text("SELECT count(*) FROM t")).scalar() == 0
        assert reader.execute(text("SELECT count(*) FROM t")).scalar() == 0
    with sessions.read() as reader:
        assert reader.execute(text("SELECT count(*) FROM t")).scalar() == 1
    engine.dispose()


def test_a_block_that_raises_stores_nothing(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/a.db")
    sessions = Sessions(engine)

    def write_and_fail() -> None:
        with sessions.write() as session:
            session.execute(text("CREATE TABLE t (x INTEGER)"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_fail()
    with sessions.read() as session:
        assert session.execute(text("SELECT count(*) FROM sqlite_master")).scalar() == 0
    engine.dispose()


def test_times_follow_the_order_of_writers(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/a.db")
    ticks = itertools.count()
    sessions = Sessions(engine, lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(ticks)))
    waiting = threading.Event()

    def second() -> datetime:
        waiting.set()
        with sessions.write():
            return sessions.now()

    with ThreadPoolExecutor(1) as pool:
        with sessions.write():
            later = pool.submit(second)
            waiting.wait()
            assert not wait([later], timeout=0.2).done
            earlier = sessions.now()
        assert earlier < later.result()
    engine.dispose()


@given(st.datetimes(datetime(1900, 1, 1), datetime(2900, 1, 1), timezones=st.timezones()))
def test_times_are_utc_on_both_databases(time: datetime) -> None:
    dialects: tuple[Dialect, ...] = (sqlite.dialect(), postgresql.dialect())  # type: ignore[no-untyped-call]
    for dialect in dialects:
        stored = UtcDateTime().process_bind_param(time, dialect)
        assert (
            UtcDateTime().process_result_value(stored.replace(tzinfo=None), dialect) == stored == time.astimezone(UTC)
        )
        elsewhere = stored.astimezone(timezone(timedelta(hours=5)))
        assert UtcDateTime().process_result_value(elsewhere, dialect).tzinfo is UTC


def test_naive_times_are_refused() -> None:
    with pytest.raises(ValueError, match="naive"):
        UtcDateTime().process_bind_param(datetime(2030, 1, 1), sqlite.dialect())


@given(st.text())
def test_clean_text_is_cleaned_once_and_leaves_good_text_alone(message: str) -> None:
    clean = clean_text(message)
    assert clean_text(clean) == clean
    assert clean.encode().decode() == clean
    if "\x00" not in message and not any("\ud800" <= character <= "\udfff" for character in message):
        assert clean == message


def test_clean_text_replaces_what_cannot_be_stored() -> None:
    assert clean_text("a\x00b\ud800c") == "a\ufffdb\ufffdc"


def test_digests_name_their_texts() -> None:
    assert space_hash(None) == BUILTIN_SPACE
    assert space_hash("[1]") == space_hash("[1]") != space_hash("[2]")
    assert target_id("a") != target_id("b")


def test_the_database_needs_neither_tvm_nor_ray() -> None:
    loaded = "import sys, db, db.migrate; print([m for m in ('tvm', 'ray', 'xgboost', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

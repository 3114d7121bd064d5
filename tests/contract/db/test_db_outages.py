"""What a database says that cannot work: it is told apart from a fault of a statement."""

from __future__ import annotations

import contextlib
import pickle
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url, text

from db import Database, migrate, revisions
from db.engine import connections
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions, create_engine
from db.errors import (
    AccessRefused,
    DatabaseAway,
    DatabaseDamaged,
    DatabaseError,
    DiskFull,
    SchemaTooNew,
    TransactionConflict,
)
from tests.contract.db.conftest import Clock, World
from tests.support.postgres import postgres_server, stopped
from tests.support.waiting import wait_for


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    migrate.upgrade(f"sqlite:///{path}")
    return path


@contextlib.contextmanager
def sessions_of(url: str) -> Iterator[Sessions]:
    engine = create_engine(url)
    yield Sessions(engine)
    engine.dispose()


def write(sessions: Sessions) -> None:
    with sessions.write() as session:
        session.execute(text("CREATE TABLE more (x TEXT)"))
        for _ in range(100):
            session.execute(text("INSERT INTO more VALUES (:x)"), {"x": "x" * 100_000})


def test_a_file_that_is_locked_for_too_long_is_away(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("db.engine.connections.BUSY_TIMEOUT_MS", 10)
    with sqlite3.connect(file, isolation_level=None) as other, sessions_of(f"sqlite:///{file}") as sessions:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseAway, match="waited too long for others to end: database is locked"):
            write(sessions)
        other.execute("ROLLBACK")
        write(sessions)


def test_a_file_on_a_full_disk_stores_nothing_and_says_so(file: Path) -> None:
    with sessions_of(f"sqlite:///{file}") as sessions:
        with sessions.read() as session:
            # Less than there is: the file cannot grow on this connection, which the pool keeps.
            session.execute(text("PRAGMA max_page_count = 1"))
        with pytest.raises(DiskFull, match="full"):
            write(sessions)
        with sessions.read() as session:
            assert session.execute(text("SELECT 1 FROM sqlite_master WHERE name = 'more'")).all() == []


def test_a_damaged_file_is_told_from_one_that_is_away(file: Path) -> None:
    file.write_bytes(b"no database at all" * 1000)
    for suffix in ("-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    with pytest.raises(DatabaseDamaged, match="not a database"):
        migrate.upgrade(f"sqlite:///{file}")


def test_damage_is_found_by_whoever_meets_it(file: Path) -> None:
    sqlite3.connect(file).execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with file.open("r+b") as opened:
        opened.seek(4096)
        opened.write(b"\xff" * (file.stat().st_size - 4096))
    database = Database(f"sqlite:///{file}")
    with pytest.raises(DatabaseDamaged, match="malformed"):
        database.jobs.page()
    database.close()


def test_a_file_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AccessRefused, match="unable to open"):
        migrate.upgrade(f"sqlite:///{tmp_path}/no/such/folder/a.db")


def test_a_fault_of_a_statement_is_no_outage(url: str) -> None:
    with sessions_of(url) as sessions:
        for use in (sessions.read, sessions.write):
            with pytest.raises(Exception, match="nothing_of_the_kind") as found, use() as session:
                session.execute(text("SELECT * FROM nothing_of_the_kind"))
            assert not isinstance(found.value, DatabaseError)


def test_a_deadlock_is_resolved_by_a_retry_and_logged_as_one(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    both_have_one = threading.Barrier(2)
    calls: list[str] = []

    @retry_conflicts
    def count_in(first: str, second: str) -> None:
        calls.append(first)
        with sessions.write() as session:
            session.execute(text("SET LOCAL deadlock_timeout = '20ms'"))
            session.execute(add, {"place": first})
            if len(calls) <= 2:
                both_have_one.wait(30)
            session.execute(add, {"place": second})

    add = text("UPDATE counted SET times = times + 1 WHERE place = :place")
    with sessions_of(postgres_url) as sessions:
        with sessions.write() as session:
            session.execute(text("CREATE TABLE counted AS SELECT 'a' AS place, 0 AS times UNION SELECT 'b', 0"))
        threads = [threading.Thread(target=count_in, args=order) for order in (("a", "b"), ("b", "a"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        with sessions.write() as session:
            assert session.scalars(text("SELECT times FROM counted")).all() == [2, 2]
            session.execute(text("DROP TABLE counted"))
    assert len(calls) == 3
    [logged] = [record.message for record in caplog.records if record.name == "loopwright.database"]
    assert "deadlock detected" in logged
    assert "does not answer" not in logged


def test_a_transaction_that_conflicts_again_and_again_ends(postgres_url: str) -> None:
    calls: list[None] = []

    @retry_conflicts
    def conflict() -> None:
        calls.append(None)
        with sessions.write() as session:
            session.execute(text("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$"))

    with sessions_of(postgres_url) as sessions, pytest.raises(TransactionConflict, match="40001"):
        conflict()
    assert len(calls) == 5


@pytest.mark.parametrize(
    ("limit", "idle", "statement"),
    [
        ("statement_timeout", 0.0, "SELECT pg_sleep(60)"),
        ("lock_timeout", 0.0, "SELECT count(*) FROM jobs"),
        ("idle_in_transaction_session_timeout", 0.5, "SELECT 1"),
    ],
)
def test_what_is_stuck_ends(
    postgres_url: str, limit: str, idle: float, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections._LIMITS_MS, limit, 200)

    def stuck() -> None:
        with sessions.write() as session:
            session.execute(text("SELECT 1"))
            other.execute("SELECT pg_sleep(%s)", [idle])
            session.execute(text(statement))

    with psycopg.connect(postgres_url) as other, sessions_of(postgres_url) as sessions:
        other.execute("LOCK TABLE jobs")
        with pytest.raises(DatabaseAway):
            stuck()
        other.rollback()
        with sessions.read() as session:
            assert session.scalar(text("SELECT count(*) FROM jobs")) == 0


def test_migrations_may_take_as_long_as_they_need(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections._LIMITS_MS, "statement_timeout", 100)
    slow = "SELECT pg_sleep(0.5)"
    revisions.in_transaction(postgres_url, lambda connection: connection.execute(text(slow)))
    with pytest.raises(DatabaseAway), sessions_of(postgres_url) as sessions, sessions.read() as session:
        session.execute(text(slow))


def test_a_process_has_no_more_connections_than_it_may(postgres_url: str) -> None:
    database, arrived, goes_on = Database(postgres_url, connections=3), threading.Semaphore(0), threading.Event()

    def hold() -> None:
        with database._sessions.read() as session:
            session.execute(text("SELECT 1"))
            arrived.release()
            goes_on.wait(60)

    threads = [threading.Thread(target=hold) for _ in range(5)]
    for thread in threads:
        thread.start()
    try:
        assert all(arrived.acquire(timeout=30) for _ in range(3))
        assert not arrived.acquire(timeout=0.5)
    finally:
        goes_on.set()
        for thread in threads:
            thread.join()
        database.close()


def test_a_process_waits_while_the_server_has_no_connection_left(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    role = f"few_{uuid.uuid4().hex[:8]}"
    limited = make_url(postgres_url).set(username=role).render_as_string(hide_password=False)
    with psycopg.connect(postgres_url, autocommit=True) as administrator:
        administrator.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 1")
        one, other = Database(limited), Database(limited)
        one.ping()
        waiting = threading.Thread(target=other.ping)
        waiting.start()
        wait_for("the other to say that it waits", lambda: "no connection left" in caplog.text)
        assert waiting.is_alive()
        one.ping()  # with the connection that it has
        one.close()
        waiting.join(60)
        assert not waiting.is_alive()
        other.ping()
        assert len([each for each in caplog.records if "no connection left" in each.message]) == 1
        other.close()
        administrator.execute(f"DROP ROLE {role}")


def test_a_server_that_stays_without_a_connection_is_away(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("db.engine.free_connections.PATIENCE_SECONDS", 0.1)
    role = f"none_{uuid.uuid4().hex[:8]}"
    limited = make_url(postgres_url).set(username=role).render_as_string(hide_password=False)
    with psycopg.connect(postgres_url, autocommit=True) as administrator:
        administrator.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 0")
        with contextlib.closing(Database(limited)) as database, pytest.raises(DatabaseAway, match="too many"):
            database.ping()
        administrator.execute(f"DROP ROLE {role}")


def test_a_transaction_takes_one_connection(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("db.engine.clock._MEASURE_SECONDS", 0.0)
    with contextlib.closing(Database(postgres_url, connections=1)) as database:
        job = World(database, Clock()).job()
        claimed = database.jobs.claim("here", 30)
        assert claimed is not None
        assert database.jobs.renew(job.id, claimed.lease_token, 30)


def test_a_connection_that_has_ended_at_rest_is_replaced(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("db.engine.connections._REST_SECONDS", 0.0)
    with sessions_of(postgres_url) as sessions, psycopg.connect(postgres_url) as administrator:
        with sessions.read() as session:
            pid = session.scalar(text("SELECT pg_backend_pid()"))
        administrator.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
        with sessions.read() as session:
            assert session.scalar(text("SELECT pg_backend_pid()")) != pid


def test_tables_of_a_newer_version_are_named(url: str) -> None:
    with sessions_of(url) as sessions, sessions.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for look in (migrate.upgrade, revisions.check):
        with pytest.raises(SchemaTooNew, match="9999"):
            look(url)


def test_a_server_is_away_while_it_is_stopped_and_works_after() -> None:
    with postgres_server() as server:
        uri = server.get_uri()
        migrate.upgrade(uri)
        database = Database(uri)
        database.ping()
        with stopped(server), pytest.raises(DatabaseAway):
            database.ping()
        with stopped(server), pytest.raises(DatabaseAway):
            revisions.check(uri)
        database.ping()
        with pytest.raises(AccessRefused, match="does not exist"):
            Database(uri.replace("/postgres?", "/nothing?")).ping()
        with psycopg.connect(uri, autocommit=True) as administrator:
            (Path(server.pgdata) / "pg_hba.conf").write_text("local all all scram-sha-256\n")
            administrator.execute("SELECT pg_reload_conf()")

        def refused() -> bool:
            database.close()
            try:
                database.ping()
            except AccessRefused as error:
                return "password" in str(error)
            return False

        wait_for("the server to ask for a password", refused)
        database.close()


@pytest.mark.parametrize("error", [DatabaseAway("away"), SchemaTooNew("9999")])
def test_errors_cross_processes(error: DatabaseError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), str(error))


def test_only_a_crash_counts_as_an_attempt(world: World) -> None:
    job = world.job()
    for _ in range(3):
        claimed = world.claim()
        assert claimed.job.attempts == 1
        assert world.db.jobs.release(job.id, claimed.lease_token)
    assert world.db.jobs.get(job.id).attempts == 0
    for attempts in (1, 2):
        claimed = world.claim()
        assert claimed.job.attempts == attempts
        assert world.db.jobs.release(job.id, claimed.lease_token, died=True)
    assert world.db.jobs.get(job.id).attempts == 2


def test_a_claim_that_its_owner_never_heard_of_goes_back(world: World) -> None:
    world.job("a")
    world.job("b")
    world.job("c")
    known, forgotten = world.db.jobs.claim("me", 30), world.db.jobs.claim("me", 30)
    other = world.db.jobs.claim("other", 30)
    (task,) = world.db.tasks.of_job(forgotten.job.id)
    assert world.db.tasks.try_start(task.id, forgotten.lease_token)
    assert world.db.jobs.release_forgotten("me", [known.lease_token]) == 1
    assert world.db.jobs.release_forgotten("me", [known.lease_token]) == 0
    assert world.task(forgotten.job.id).state == "queued"
    again = world.claim()
    assert (again.job.id, again.job.attempts) == (forgotten.job.id, 1)
    for held in (known, other):
        assert world.db.jobs.renew(held.job.id, held.lease_token, 30)


def test_leases_go_by_the_servers_clock(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller whose machine is ahead steals nothing, and sees workers alive that others have registered."""
    here = Database(postgres_url)
    World(here, Clock()).job()
    assert here.jobs.claim("here", 30) is not None
    monkeypatch.setattr("db.engine.connections.utc_now", lambda: datetime.now(UTC) + timedelta(seconds=40))
    ahead = Database(postgres_url)
    assert ahead.jobs.claim("ahead", 30) is None
    with sessions_of(postgres_url) as sessions, sessions.read() as session:
        before, now = session.execute(text("SELECT clock_timestamp()")).scalar_one(), ahead.now()
    assert abs(now - before) < timedelta(seconds=20)
    here.close()
    ahead.close()

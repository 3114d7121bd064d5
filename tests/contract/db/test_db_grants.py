"""The service's own role on PostgreSQL reads and writes rows; tables it cannot change."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from db import Database, migrate, revisions
from db.results.best_schedules import BestScheduleQuery
from db.upkeep.grants import CannotGrant
from tests.contract.db.conftest import Clock, World
from tests.support.postgres import new_database

ROOT = Path(__file__).parents[3]


REFUSED = (
    "DROP TABLE trials",
    "ALTER TABLE jobs ADD COLUMN more text",
    "ALTER TABLE jobs OWNER TO CURRENT_USER",
    "TRUNCATE certificates CASCADE",
    "CREATE TABLE mine (x integer)",
    "CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE INDEX more ON trials (state)",
    "CREATE TRIGGER t BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE SCHEMA mine",
    "CREATE ROLE another",
    "UPDATE alembic_version SET version_num = 'other'",
    "COPY jobs TO PROGRAM 'cat'",
    "COPY jobs FROM '/etc/passwd'",
    "SELECT pg_read_file('/etc/passwd')",
)


@dataclass(frozen=True)
class Roles:
    """A database's URL for the owner of its tables and for another role, and that role's name."""

    owner: str
    narrow: str
    name: str


@pytest.fixture
def roles(postgres: str) -> Iterator[Roles]:
    name = f"service-{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE \"{name}\" LOGIN PASSWORD 'secret'")
        with new_database(postgres, "template") as url:
            narrow = make_url(url).set(username=name, password="secret")
            yield Roles(url, narrow.render_as_string(False), name)
        connection.execute(f'DROP ROLE "{name}"')


def test_a_narrow_role_takes_a_job_from_its_submission_to_its_certificate(roles: Roles) -> None:
    migrate.grant(roles.owner, roles.name)
    clock = Clock()
    db = Database(roles.narrow, clock)
    try:
        world = World(db, clock)
        trials, certificate = world.measured(0.5, 0.25)
        assert db.records.get(trials[-1].id).certificate.id == certificate
        assert len(list(db.best_schedules.all(BestScheduleQuery()))) == 1
    finally:
        db.close()


def test_a_narrow_role_can_do_nothing_without_the_grant(roles: Roles) -> None:
    assert refused(roles, "SELECT * FROM jobs")


def test_a_narrow_role_cannot_change_tables_or_reach_the_server(roles: Roles) -> None:
    migrate.grant(roles.owner, roles.name)
    assert [statement for statement in REFUSED if not refused(roles, statement)] == []


def refused(roles: Roles, statement: str) -> bool:
    try:
        with psycopg.connect(roles.narrow) as connection:
            connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def test_a_grant_takes_back_what_was_more(roles: Roles) -> None:
    with psycopg.connect(roles.owner, autocommit=True) as connection:
        connection.execute(f'GRANT ALL ON ALL TABLES IN SCHEMA public TO "{roles.name}"')
        connection.execute(f'GRANT CREATE ON SCHEMA public TO "{roles.name}"')
    migrate.grant(roles.owner, roles.name)
    for statement in ("TRUNCATE certificates CASCADE", "CREATE TABLE mine (x integer)"):
        assert refused(roles, statement)


def test_a_service_may_start_with_the_narrow_role_when_there_is_nothing_to_migrate(roles: Roles) -> None:
    migrate.grant(roles.owner, roles.name)
    migrate.upgrade(roles.narrow)
    assert revisions.current(roles.narrow) == revisions.newest()


def test_roles_that_are_unknown_or_own_the_tables_are_refused(roles: Roles, tmp_path: Path) -> None:
    with pytest.raises(CannotGrant, match="there is no role 'nobody'"):
        migrate.grant(roles.owner, "nobody")
    owner = make_url(roles.owner).username or "postgres"
    with pytest.raises(CannotGrant, match="superuser"):
        migrate.grant(roles.owner, owner)
    with pytest.raises(CannotGrant, match="SQLite"):
        migrate.grant(f"sqlite:///{tmp_path}/loopwright.db", "anybody")


@pytest.mark.whole
def test_the_migrate_command_grants(roles: Roles) -> None:
    def run(role: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "service", "migrate", "--grant-to", role],
            cwd=ROOT,
            env={**os.environ, "LOOPWRIGHT_DATABASE_URL": roles.owner},
            capture_output=True,
            text=True,
            check=False,
        )

    done = run(roles.name)
    assert done.returncode == 0, done.stderr
    with psycopg.connect(roles.narrow) as connection:
        assert connection.execute("SELECT count(*) FROM jobs").fetchone() == (0,)
    refused = run("nobody")
    assert refused.returncode == 1
    assert refused.stderr.startswith("loopwright: there is no role 'nobody'")

